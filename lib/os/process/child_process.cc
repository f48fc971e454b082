#include "lib/os/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/check.h"

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 lacks extern "C" there
}

namespace tokamak::os {
namespace {

// The child's data, all made before the fork: after it the child of a threaded program may not even
// allocate.
struct Plan {
  std::string program;
  std::vector<char*> argv;
  std::vector<char*> environment;
  int input = -1;
  int output = -1;  // -1: inherited
  int failure = -1;
  bool own_group = false;
  bool die_with_parent = false;
  pid_t parent = 0;
};

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = getenv("PATH");
  for (absl::string_view directory : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string candidate = absl::StrCat(directory.empty() ? "." : directory, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("no program ", name, " in PATH: install it, or give its path"));
}

std::vector<std::string> Environment(const std::vector<std::pair<std::string, std::string>>& additions) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const absl::string_view name = absl::string_view(*variable).substr(0, absl::string_view(*variable).find('='));
    const bool replaced =
        std::any_of(additions.begin(), additions.end(), [&](const auto& a) { return a.first == name; });
    if (!replaced) variables.emplace_back(*variable);
  }
  for (const auto& [name, value] : additions) variables.push_back(absl::StrCat(name, "=", value));
  return variables;
}

// Runs in the child: becomes the program, or sends the parent the errno.
[[noreturn]] void Become(const Plan& plan) {
  if (plan.own_group) setpgid(0, 0);
  if (plan.die_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != plan.parent) _exit(1);  // it ended before that call
  }
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  bool ready = dup2(plan.input, STDIN_FILENO) >= 0;
  if (plan.output >= 0) {
    ready = ready && dup2(plan.output, STDOUT_FILENO) >= 0 && dup2(plan.output, STDERR_FILENO) >= 0;
  }
  if (ready) execve(plan.program.c_str(), plan.argv.data(), plan.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(plan.failure, &error, sizeof(error));
  _exit(127);
}

// Returns the child's errno; 0 once it is the program.
int ReadFailure(int descriptor) {
  int error = 0;
  ssize_t size = 0;
  do {
    size = read(descriptor, &error, sizeof(error));
  } while (size < 0 && errno == EINTR);
  return size == sizeof(error) ? error : 0;
}

base::Time Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return base::Time() + base::Seconds(now.tv_sec) + base::Nanoseconds(now.tv_nsec);
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (signal != 0) return absl::StrCat("signal ", signal, " (", strsignal(signal), ")");
  return absl::StrCat("exit code ", code);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildOptions& options) {
  CHECK(!options.argv.empty());
  const absl::StatusOr<std::string> program = FindProgram(options.argv.front());
  if (!program.ok()) return program.status();

  const FileDescriptor input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.valid()) return absl::ErrnoToStatus(errno, "cannot open /dev/null");
  FileDescriptor output;
  if (!options.output.empty()) {
    output = FileDescriptor(open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!output.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write to ", options.output));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const FileDescriptor failure_out(ends[0]);
  FileDescriptor failure_in(ends[1]);

  std::vector<std::string> argv = options.argv;
  std::vector<std::string> environment = Environment(options.environment);
  Plan plan;
  plan.program = *program;
  plan.argv = Pointers(argv);
  plan.environment = Pointers(environment);
  plan.input = input.get();
  plan.output = output.get();
  plan.failure = failure_in.get();
  plan.own_group = options.own_group;
  plan.die_with_parent = options.die_with_parent;
  plan.parent = getpid();

  // A signal must not run a handler of ours in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) Become(plan);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return absl::ErrnoToStatus(fork_error, "cannot start a process");
  if (options.own_group) setpgid(pid, pid);  // on both sides, so neither need wait

  failure_in.Close();
  const int failure = ReadFailure(failure_out.get());
  FileDescriptor descriptor(pidfd_open(pid, 0));
  const int pidfd_error = errno;
  if (failure == 0 && descriptor.valid()) {
    return std::unique_ptr<ChildProcess>(new ChildProcess(pid, std::move(descriptor), options.own_group));
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (failure != 0) return absl::ErrnoToStatus(failure, absl::StrCat("cannot start ", *program));
  return absl::ErrnoToStatus(pidfd_error, "cannot watch a process (pidfd_open needs Linux 5.3)");
}

ChildProcess::~ChildProcess() {
  if (reaped_ || detached_) return;
  Kill(SIGKILL);
  Reap();
}

bool ChildProcess::running() { return !reaped_ && !EndsWithin(base::Duration()); }

absl::Status ChildProcess::Signal(int signal) {
  if (!running()) return absl::FailedPreconditionError("the program has ended");
  Kill(signal);
  return absl::OkStatus();
}

absl::StatusOr<ExitStatus> ChildProcess::Wait(base::Duration deadline) {
  if (!reaped_ && !EndsWithin(deadline)) return absl::DeadlineExceededError("the program still runs");
  Reap();
  return status_;
}

ExitStatus ChildProcess::Stop(base::Duration grace) {
  if (running()) {
    Kill(SIGTERM);
    if (!EndsWithin(grace)) Kill(SIGKILL);
  }
  Reap();
  return status_;
}

bool ChildProcess::EndsWithin(base::Duration wait) {
  const base::Time deadline = Now() + wait;
  while (true) {
    const base::Duration left = std::max(deadline - Now(), base::Duration());
    const timespec timeout{left.nanoseconds() / 1'000'000'000, left.nanoseconds() % 1'000'000'000};
    pollfd ended{descriptor_.get(), POLLIN, 0};
    const int count = ppoll(&ended, 1, &timeout, nullptr);
    PCHECK(count >= 0 || errno == EINTR) << "ppoll";
    if (count > 0) return true;
    if (count == 0 && Now() >= deadline) return false;
  }
}

// Only before Reap: afterwards the number may be another process's.
void ChildProcess::Kill(int signal) { kill(own_group_ ? -pid_ : pid_, signal); }

void ChildProcess::Reap() {
  if (reaped_) return;
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0) PCHECK(errno == EINTR) << "waitid";
  if (own_group_ && !detached_) Kill(SIGKILL);  // kills the rest of the group
  while (waitpid(pid_, nullptr, 0) < 0) PCHECK(errno == EINTR) << "waitpid";
  if (info.si_code == CLD_EXITED) {
    status_.code = info.si_status;
  } else {
    status_.signal = info.si_status;
  }
  reaped_ = true;
}

}  // namespace tokamak::os
