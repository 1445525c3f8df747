#!/bin/sh
# The path of a Python of the version given, as 3.12, from PATH or pyenv; status 1 where there is none.
for python in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
  if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    command -v "$python"
    exit 0
  fi
done
exit 1
