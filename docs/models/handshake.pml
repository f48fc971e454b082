/* The handshake of lib/security (Handshake: NNpsk0 of the Noise Protocol Framework and a confirming message), between honest nodes A
 * and B, with somebody between them who has not the cluster's secret.
 *
 * Who is between hears every message, keeps it, drops it, delivers it to anybody, as often as he likes and in any order, puts his own
 * ephemeral keys and seals under a secret of his own into it, and decides what each side sees of the connection's facts: which
 * offers (hellos) come through, and which address the other one seems to have. He also sends a request of A on to A itself, and gives an
 * honest responder the same facts a second time, so that what he recorded is as useful as it can be.
 *
 * Ciphers are perfect: a seal is the list of what was mixed into its key and its hash, and only who can make that list can make the
 * seal. The shared secret of two ephemeral keys is known to who has the private half of one of them; he has that of his own alone.
 *
 * Proven, by looking at all states (spin -a, pan):
 *   - If an initiator finishes, a responder with the address that it wanted answered it, with the same facts and both keys.
 *   - If a responder finishes, an initiator finished with it, with the same facts and both keys, and with no other responder.
 * So both agree on peer and prologue, and who is between makes nobody finish with himself. That is agreement; that nobody else has the keys
 * is not looked at here, and rests on what Noise proves of NNpsk0.
 *
 * With one of these defined a part is missing, and the properties must fail (tests/security/handshake_model_test.py):
 *   NO_CONFIRMING   a responder finishes with the first message
 *   NO_PROLOGUE     the facts are not mixed in
 *   NO_SECRET       the secret is not mixed in
 *   NO_ROLES        the facts do not say who is initiator
 * And with REACHED the model must fail where a responder finishes: it can.
 */

/* Principals, as addresses. */
#define A 1
#define B 2

/* Sessions. 0: A asks B. 1 and 2: B is asked, twice. 3: A is asked. */
#define INITIATOR 0
#define SESSIONS 4

/* Ephemeral keys: that of session s is s + 1. */
#define HIS_KEY 5
#define KEY(s) ((s) + 1)

/* Secrets. */
#define CLUSTER 1
#define HIS_SECRET 2

#define IDLE 0
#define WAITING 1   /* initiator: has sent the first message; responder: has answered it */
#define FINISHED 2
#define REFUSED 3

/* How far a session is, and the facts that it sees. */
byte phase[SESSIONS];
byte asking[SESSIONS];    /* the initiator's address, as it sees it */
byte asked[SESSIONS];     /* the responder's */
byte offers[SESSIONS];    /* which offers it sees: 0, 1 */
byte peer_key[SESSIONS];  /* 0: none yet */

/* Which honest seals there are: who is between knows them all. A seal of a session is a list, kept with the session:
 *   first    secret, facts, key of the initiator
 *   second   secret, facts, both keys, their shared secret
 *   third    as the second, and that it is the third */
bool first_sent, third_sent;
bool second_sent[SESSIONS];

#ifdef NO_PROLOGUE
#define SAME_FACTS(s, t) true
#else
#ifdef NO_ROLES
#define SAME_FACTS(s, t)                                                              \
  (offers[s] == offers[t] && ((asking[s] == asking[t] && asked[s] == asked[t]) || \
                              (asking[s] == asked[t] && asked[s] == asking[t])))
#else
#define SAME_FACTS(s, t) (asking[s] == asking[t] && asked[s] == asked[t] && offers[s] == offers[t])
#endif
#endif

/* With the secret mixed in he makes no seal that an honest side opens. Without it he makes all whose keys he knows. */
#ifdef NO_SECRET
#define HE_CAN_SEAL true
#else
#define HE_CAN_SEAL (HIS_SECRET == CLUSTER)
#endif

/* The properties. */
#define KEYS_AGREE(i, r) (peer_key[i] == KEY(r) && peer_key[r] == KEY(i))
#define FACTS_AGREE(i, r) (asking[i] == asking[r] && asked[i] == asked[r] && offers[i] == offers[r])
#define ADDRESS_OF(s) (s == 3 || s == INITIATOR -> A : B)

inline finish_initiator() {
  phase[INITIATOR] = FINISHED;
  third_sent = true;
  partners = 0;
  for (s : 1 .. 3) {
    if
    :: second_sent[s] && KEYS_AGREE(INITIATOR, s) && FACTS_AGREE(INITIATOR, s) && ADDRESS_OF(s) == B -> partners++
    :: else -> skip
    fi
  }
  assert(partners == 1)
}

inline finish_responder(r) {
  phase[r] = FINISHED;
#ifdef REACHED
  assert(false);
#endif
#ifdef NO_CONFIRMING
  assert(peer_key[r] == KEY(INITIATOR) && FACTS_AGREE(INITIATOR, r) && ADDRESS_OF(r) == B);
#else
  assert(phase[INITIATOR] == FINISHED && KEYS_AGREE(INITIATOR, r) && FACTS_AGREE(INITIATOR, r) && ADDRESS_OF(r) == B);
#endif
  partners = 0;
  for (s : 1 .. 3) {
    if
    :: phase[s] == FINISHED -> partners++
    :: else -> skip
    fi
  }
  assert(partners == 1)
}

/* A responder takes a first message: `key` with a seal that is right for it (`opens`) or not. */
inline take_first(r, key, opens) {
  if
  :: opens && key != KEY(r) ->
     peer_key[r] = key;
     second_sent[r] = true;
     phase[r] = WAITING;
#ifdef NO_CONFIRMING
     finish_responder(r)
#endif
  :: else -> phase[r] = REFUSED
  fi
}

inline take_second(key, opens) {
  if
  :: opens && key != KEY(INITIATOR) ->
     peer_key[INITIATOR] = key;
     finish_initiator()
  :: else -> phase[INITIATOR] = REFUSED
  fi
}

inline take_third(r, opens) {
  if
  :: opens -> finish_responder(r)
  :: else -> phase[r] = REFUSED
  fi
}

active proctype Network() {
  byte s, partners, responder, key, offer;

  /* The facts that each side sees. A wants B; which offers each sees, and who seems to ask the responders, is his choice. */
  asking[INITIATOR] = A;
  asked[INITIATOR] = B;
  select(offer : 0 .. 1);
  offers[INITIATOR] = offer;
  asked[1] = B;
  asked[2] = B;
  asked[3] = A;
  for (s : 1 .. 3) {
    select(offer : 0 .. 1);
    offers[s] = offer;
    if
    :: asking[s] = A
    :: asking[s] = B
    fi
  }
  s = 0;
  offer = 0;

  do
  :: atomic { phase[INITIATOR] == IDLE -> first_sent = true; phase[INITIATOR] = WAITING }

  /* To a responder: the honest first message, or its seal behind his key, or one of his own. */
  :: atomic {
       select(responder : 1 .. 3);
       if
       :: phase[responder] == IDLE ->
          if
          :: first_sent -> take_first(responder, KEY(INITIATOR), SAME_FACTS(INITIATOR, responder))
          :: first_sent -> take_first(responder, HIS_KEY, false)
          :: true -> take_first(responder, HIS_KEY, HE_CAN_SEAL)
          :: skip
          fi
       :: phase[responder] == WAITING ->
          /* The honest third message, or his own; the shared secret of two honest keys he does not have. */
          if
          :: third_sent -> take_third(responder, KEYS_AGREE(INITIATOR, responder) && SAME_FACTS(INITIATOR, responder))
          :: true -> take_third(responder, HE_CAN_SEAL && peer_key[responder] == HIS_KEY)
          :: skip
          fi
       :: else -> skip
       fi;
       responder = 0;
       s = 0;
       partners = 0
     }

  /* To the initiator: its own key, as if it opened; his own message; a responder's, or its seal behind his key. */
  :: atomic {
       phase[INITIATOR] == WAITING ->
       if
       :: true -> take_second(KEY(INITIATOR), true)
       :: true -> take_second(HIS_KEY, HE_CAN_SEAL)
       :: second_sent[1] -> key = 1
       :: second_sent[2] -> key = 2
       :: second_sent[3] -> key = 3
       :: skip
       fi;
       if
       :: key != 0 && phase[INITIATOR] == WAITING ->
          if
          :: true -> take_second(KEY(key), peer_key[key] == KEY(INITIATOR) && SAME_FACTS(INITIATOR, key))
          :: true -> take_second(HIS_KEY, false)
          fi
       :: else -> skip
       fi;
       key = 0;
       s = 0;
       partners = 0
     }
  :: break
  od
}
