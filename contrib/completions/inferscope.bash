# bash completion for inferscope; made from its option table
_inferscope()
{
	local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}"
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "attach run analyze merge diff dump top dump-trace assemble detach doctor schema config --help --version" -- "$word"))
		return
	fi
	case "$before" in
	--hook) COMPREPLY=($(compgen -W "auto none monitoring evaluator setprofile settrace" -- "$word")); return ;;
	--c-calls) COMPREPLY=($(compgen -W "auto all none" -- "$word")); return ;;
	--gpu) COMPREPLY=($(compgen -W "auto none" -- "$word")); return ;;
	--gpu-backend) COMPREPLY=($(compgen -W "cupti nsys" -- "$word")); return ;;
	--gpu-graphs) COMPREPLY=($(compgen -W "node graph" -- "$word")); return ;;
	--native) COMPREPLY=($(compgen -W "auto hold both none" -- "$word")); return ;;
	--syscalls) COMPREPLY=($(compgen -W "sampled trace none" -- "$word")); return ;;
	--source) COMPREPLY=($(compgen -W "auto none" -- "$word")); return ;;
	--argv) COMPREPLY=($(compgen -W "redacted all" -- "$word")); return ;;
	--log-level) COMPREPLY=($(compgen -W "debug info warn error" -- "$word")); return ;;
	--error-format) COMPREPLY=($(compgen -W "text json" -- "$word")); return ;;
	--color) COMPREPLY=($(compgen -W "auto always never" -- "$word")); return ;;
	-f|--format) COMPREPLY=($(compgen -W "text md html json events perfetto chrome speedscope collapsed pprof otlp profile stacks csv " -- "$word")); return ;;
	esac
	case "$command" in
	attach) COMPREPLY=($(compgen -W "$(pgrep python 2>/dev/null) --pid --children --match --cgroup --container --duration --at --every --keep --keep-mb --ship --ship-as --ship-mb --on --window --keep-files --output --format --trace --force --max-overhead --alternate --measure-overhead --hook --c-calls --gc --memory --memory-native --memory-interval --gpu --gpu-memory --gpu-graphs --gpu-max-kernels --skip --rate --native --debuginfod --syscalls --counters --trace-size-mb --gil-timeout --sync-error-margin-us --scope --top --max-report-mb --source --parameter --rules-file --fail-on --strict --argv --unverified --ready-fd --inside-fd --dry-run --log-level --error-format --color --help " -- "$word")) ;;
	run) COMPREPLY=($(compgen -f -W "--output --format --trace --force --max-overhead --hook --c-calls --gc --memory --memory-native --memory-interval --gpu --gpu-backend --gpu-memory --gpu-graphs --gpu-max-kernels --skip --rate --native --debuginfod --syscalls --counters --trace-size-mb --gil-timeout --sync-error-margin-us --scope --top --max-report-mb --source --parameter --rules-file --fail-on --strict --argv --unverified --python --module --code --enabled --log-level --error-format --color --help " -- "$word")) ;;
	analyze) COMPREPLY=($(compgen -f -W "--output --format --force --scope --top --max-report-mb --source --parameter --rules-file --fail-on --strict --list-metrics --explain --check-rules --log-level --error-format --color --help " -- "$word")) ;;
	merge) COMPREPLY=($(compgen -f -W "--output --format --force --scope --parameter --rules-file --fail-on --strict --log-level --error-format --help " -- "$word")) ;;
	diff) COMPREPLY=($(compgen -f -W "--output --format --force --scope --parameter --rules-file --fail-on --log-level --error-format --help " -- "$word")) ;;
	dump) COMPREPLY=($(compgen -W "$(pgrep python 2>/dev/null) --pid --native --unverified --locals --json --log-level --error-format --help " -- "$word")) ;;
	top) COMPREPLY=($(compgen -W "$(pgrep python 2>/dev/null) --pid --duration --rate --native --top --unverified --json --once --refresh --log-level --error-format --help " -- "$word")) ;;
	dump-trace) COMPREPLY=($(compgen -f -W "--output --force --log-level --error-format --help " -- "$word")) ;;
	assemble) COMPREPLY=($(compgen -f -W "--output --force --log-level --error-format --help " -- "$word")) ;;
	detach) COMPREPLY=($(compgen -W "$(pgrep python 2>/dev/null) --pid --unverified --log-level --error-format --help " -- "$word")) ;;
	doctor) COMPREPLY=($(compgen -W "$(pgrep python 2>/dev/null) --pid --unverified --json --log-level --error-format --color --help " -- "$word")) ;;
	schema) COMPREPLY=($(compgen -W "--log-level --error-format --help " -- "$word")) ;;
	config) COMPREPLY=($(compgen -W "show --json --log-level --error-format --help " -- "$word")) ;;
	esac
}
complete -o default -F _inferscope inferscope
