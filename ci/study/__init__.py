"""The study of ci/paper: measures, keeps what was measured in files, and makes docs/study of these files alone."""
