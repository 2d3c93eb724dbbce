# Bash kernel: `kernel.sh REQUESTS_FD ANSWERS_FD`. A request is a program, ended by a NUL byte, that sets atoll_code,
# the code to run, and atoll_undo, which takes back its variables. Code runs in this shell, so that its state stays.

atoll_requests=$1
atoll_answers=$2
set --

# Leaves the function that runs the code.
trap 'return 130 2>/dev/null' INT

atoll_answer() {
  printf '%s\n' "$1" >&"$atoll_answers"
}

atoll_run() {
  # Programs in the background must not keep the kernel's pipes open.
  eval "$atoll_code" {atoll_requests}<&- {atoll_answers}>&-
}

atoll_answer '{"type":"ready"}'
while IFS= read -r -d '' -u "$atoll_requests" atoll_request; do
  eval "$atoll_request"
  atoll_run
  atoll_status=$?
  eval "$atoll_undo"
  if [ "$atoll_status" -ne 0 ]; then
    atoll_answer '{"type":"error","name":"ExitStatus","value":"'"$atoll_status"'","traceback":""}'
  fi
  atoll_answer '{"type":"done"}'
done
