#!/bin/sh
# completion.sh bash|zsh PROGRAM
# Prints the completion of buscap or buscapd for a shell, made of what `PROGRAM --options` lists
# (formats/base/usage.h says how) and of `buscap formats`. What it prints asks no program any more.
set -eu

shell=$1
program=$2
name=$(basename "$program")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

"$program" --options >"$work/options"
: >"$work/formats"
if cut -f 5 "$work/options" | grep -q '^format-'; then
	"$program" formats >"$work/formats"
fi

# MODE NAME KEY=... for each format that can be read, or written.
awk '
	/^[r-][w-] / {
		format = $2
		if (substr($0, 1, 1) == "r") mode["read", ++n] = format
		if (substr($0, 2, 1) == "w") mode["write", ++n] = format
	}
	/^ +options to / { sub(/:$/, "", $3); keys[$3, format] = $4; for (i = 5; i <= NF; i++) keys[$3, format] = keys[$3, format] " " $i }
	END {
		for (i = 1; i <= n; i++) {
			if (("read", i) in mode) print "read", mode["read", i], keys["read", mode["read", i]]
			if (("write", i) in mode) print "write", mode["write", i], keys["write", mode["write", i]]
		}
	}
' "$work/formats" >"$work/format_options"

# What both shells share of a text in single quotes, of a format and of a key of the configuration.
functions='
	# Takes apart what a line says of a format: `names` gets it by its mode, `format` is both, `taken` its keys.
	function take_format() {
		names[$1] = names[$1] " " $2
		format = $1 " " $2
		$1 = $2 = ""
		sub(/^ +/, "")
		taken = $0
	}
	function quote(text) { gsub(/\047/, "\047\\\047\047", text); return "\047" text "\047" }
	# What of a key is chosen by who writes it is in capitals: a pattern, and what is before it.
	function pattern(key) { gsub(/ /, "\\ ", key); gsub(/[A-Z]+/, "*", key); return key }
	function stem(key) { sub(/[A-Z].*/, "", key); return key }
	function is_new(key) { return !(key in seen) && (seen[key] = 1) }
'

print_bash() {
	cat <<'END'
# Completion of @NAME@ for bash, made by cli/completion.sh.

# The words up to the cursor, which ':' and '=' don't part.
_@NAME@_words() {
	local line=${COMP_LINE:0:COMP_POINT} rest word i

	words=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		rest=${line#"${line%%[![:space:]]*}"}
		word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$rest
		if ((i > 0 && ${#rest} == ${#line})); then
			words[${#words[@]} - 1]+=$word
		else
			words+=("$word")
		fi
		line=${rest#"$word"}
	done
}

# _@NAME@_add BEFORE CURRENT WORD...: those of the words that begin so, with BEFORE before them.
_@NAME@_add() {
	local before=$1 current=$2 word

	shift 2
	for word; do
		[[ $word == "$current"* ]] && COMPREPLY+=("$before$word")
	done
}

_@NAME@_paths() { # BEFORE CURRENT -f|-d
	local path

	compopt -o filenames 2>/dev/null
	while IFS= read -r path; do
		COMPREPLY+=("$1$path")
	done < <(compgen "$3" -- "$2")
}

# _@NAME@_kind KIND BEFORE CURRENT
_@NAME@_kind() {
	local kind=$1 before=$2 current=$3 words keys

	case $kind in
	file) _@NAME@_paths "$before" "$current" -f ;;
	dir) _@NAME@_paths "$before" "$current" -d ;;
	choice:*)
		if [[ $current == file:* && "|${kind#choice:}|" == *'|file:|'* ]]; then
			_@NAME@_paths "${before}file:" "${current#file:}" -f
		else
			IFS='|' read -ra words <<<"${kind#choice:}"
			_@NAME@_add "$before" "$current" "${words[@]}"
		fi
		;;
	list:*)
		IFS='|' read -ra words <<<"${kind#list:}"
		[[ $current == *,* ]] && before+=${current%,*},
		_@NAME@_add "$before" "${current##*,}" "${words[@]}"
		;;
	format-*)
		if [[ $current == *:* ]]; then
			_@NAME@_format "${kind#format-}" "${current%%:*}"
			read -ra words <<<"$keys"
			before+=${current%%:*}:
			current=${current#*:}
			[[ $current == *,* ]] && before+=${current%,*},
			_@NAME@_add "$before" "${current##*,}" "${words[@]}"
		else
			_@NAME@_format "${kind#format-}" ''
			read -ra words <<<"$keys"
			_@NAME@_add "$before" "$current" "${words[@]}"
		fi
		;;
	setting)
		if [[ $current == *=* ]]; then
			_@NAME@_setting "${current%%=*}"
			_@NAME@_kind "$kind" "$before${current%%=*}=" "${current#*=}"
		else
			_@NAME@_setting ''
			read -ra words <<<"$keys"
			_@NAME@_add "$before" "$current" "${words[@]}"
		fi
		;;
	esac
}

# The kind of operand NUMBER, from 0, of `kinds`: the last one stands for all behind it.
_@NAME@_operand() {
	local all

	read -ra all <<<"$kinds"
	((${#all[@]} > 0)) || return
	kind=${all[$1 < ${#all[@]} ? $1 : ${#all[@]} - 1]}
}

_@NAME@() {
	local words command=- options kinds verbs kind keys word current before i operands=0 only=0

	COMPREPLY=()
	_@NAME@_words
	current=${words[${#words[@]} - 1]}
	_@NAME@_command "$command"
	kind=
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		word=${words[i]}
		if [[ -n $kind ]]; then
			kind= # the word was its value
		elif ((only)) || [[ $word != -?* ]]; then
			if ((operands == 0)) && [[ " $verbs " == *" $word "* ]]; then
				[[ $command == - ]] && command=$word || command+=" $word"
				_@NAME@_command "$command"
			else
				((++operands))
			fi
		elif [[ $word == -- ]]; then
			only=1
		elif [[ $word != --*=* ]]; then
			_@NAME@_value "$command" "$word"
		fi
	done
	if [[ -n $kind ]]; then
		_@NAME@_kind "$kind" '' "$current"
	elif ((!only)) && [[ $current == --*=* ]]; then
		_@NAME@_value "$command" "${current%%=*}"
		_@NAME@_kind "$kind" "${current%%=*}=" "${current#*=}"
	elif ((!only)) && [[ $current == -* ]]; then
		read -ra words <<<"$options"
		_@NAME@_add '' "$current" "${words[@]}"
	else
		if [[ $command == help ]]; then
			word=-
			for ((i = 2; i < ${#words[@]} - 1; i++)); do
				[[ $word == - ]] && word=${words[i]} || word+=" ${words[i]}"
			done
			_@NAME@_command "$word"
			kinds= operands=0
		fi
		if ((operands == 0)); then
			read -ra words <<<"$verbs"
			_@NAME@_add '' "$current" "${words[@]}"
		fi
		_@NAME@_operand "$operands"
		_@NAME@_kind "$kind" '' "$current"
	fi
	# What goes on gets no blank behind it; and bash replaces what is behind the last break alone.
	[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:=.] ]] && compopt -o nospace 2>/dev/null
	before=
	for word in : =; do
		[[ $COMP_WORDBREAKS == *"$word"* && $current == *"$word"* ]] || continue
		word=${current%"${current##*"$word"}"}
		((${#word} > ${#before})) && before=$word
	done
	for i in "${!COMPREPLY[@]}"; do
		COMPREPLY[i]=${COMPREPLY[i]#"$before"}
	done
}

END
	awk -F '\t' "$functions"'
		$1 == "config" || $1 == "" { next }
		$2 == "" && $3 == "" { commands[++n] = $1; kinds[$1] = $5; next }
		{ if ($2 != "") options[$1] = options[$1] " -" $2; if ($3 != "") options[$1] = options[$1] " --" $3 }
		END {
			print "# Sets `options`, `verbs` and the `kinds` of the operands."
			print "_@NAME@_command() {\n\toptions= verbs= kinds=\n\tcase $1 in"
			for (i = 1; i <= n; i++) {
				c = commands[i]
				verbs = ""
				for (j = 1; j <= n; j++) {
					if (c == "-" && commands[j] != "-" && commands[j] !~ / /) verbs = verbs " " commands[j]
					if (index(commands[j], c " ") == 1) verbs = verbs " " substr(commands[j], length(c) + 2)
				}
				k = kinds[c] == "none" || kinds[c] == "command" ? "" : kinds[c]
				printf "\t%s)\n\t\toptions=%s\n", quote(c), quote(substr(options[c], 2))
				if (verbs != "") printf "\t\tverbs=%s\n", quote(substr(verbs, 2))
				if (k != "") printf "\t\tkinds=%s\n", quote(k)
				print "\t\t;;"
			}
			print "\tesac\n}\n"
		}
	' "$work/options"
	awk -F '\t' "$functions"'
		BEGIN { print "# Sets the `kind` of an option\047s value; to nothing if it has none.\n_@NAME@_value() {\n\tkind=\n\tcase \"$1 $2\" in" }
		$1 == "config" || $5 == "none" || $4 ~ /^\[/ || ($2 == "" && $3 == "") { next }
		{
			word = ""
			if ($2 != "") word = quote($1 " -" $2)
			if ($3 != "") word = word ($2 != "" ? " | " : "") quote($1 " --" $3)
			printf "\t%s) kind=%s ;;\n", word, quote($5)
		}
		END { print "\tesac\n}\n" }
	' "$work/options"
	if [ -s "$work/format_options" ]; then
		awk "$functions"'
			{ take_format() }
			taken != "" { rows = rows "\t" quote(format) ") keys=" quote(taken) " ;;\n" }
			END {
				print "# Sets `keys` to the formats that can be read, or written; or to what one takes."
				print "_@NAME@_format() {\n\tkeys=\n\tcase \"$1 $2\" in"
				printf "\t\047read \047) keys=%s ;;\n", quote(substr(names["read"], 2))
				printf "\t\047write \047) keys=%s ;;\n", quote(substr(names["write"], 2))
				printf "%s\tesac\n}\n\n", rows
			}
		' "$work/format_options"
	fi
	awk -F '\t' "$functions"'
		$1 != "config" { next }
		{ rows = rows "\t" pattern($3) ") kind=" quote($5) " ;;\n" }
		stem($3) !~ / / && is_new(stem($3)) { keys = keys " " stem($3) (stem($3) == $3 ? "=" : "") }
		END {
			if (rows == "") exit
			print "# Sets the `kind` of a setting\047s value; without one, `keys` to all settings."
			print "_@NAME@_setting() {\n\tkind=\n\tcase $1 in"
			printf "\t\047\047) keys=%s ;;\n%s\tesac\n}\n\n", quote(substr(keys, 2)), rows
		}
	' "$work/options"
	printf 'complete -F _@NAME@ @NAME@\n'
}

print_zsh() {
	cat <<'END'
#compdef @NAME@
# Completion of @NAME@ for zsh, made by cli/completion.sh.

# Words, of which those that end in ':', '=' or '.' go on; behind "file:" is a path.
_@NAME@_choice() {
	local ret=1

	if (( ${@[(I)file:]} )) && compset -P file:; then
		_files
		return
	fi
	compadd -S '' -- ${(M)@:#*[:=.]} && ret=0
	compadd -- ${@:#*[:=.]} && ret=0
	return ret
}

END
	if [ -s "$work/format_options" ]; then
		awk "$functions"'
			{ take_format() }
			taken != "" { rows = rows "\t(" quote(format) ") words=(" taken ") ;;\n" }
			END {
				print "# A format that can be read, or written; behind its name what it takes."
				print "_@NAME@_format() {\n\tlocal format=${PREFIX%%:*}\n\tlocal -a words\n"
				print "\tcompset -P 1 \047*:\047 || format="
				print "\tcase \"$1 $format\" in"
				print "\t(\047read \047) words=(" substr(names["read"], 2) ") ;;"
				print "\t(\047write \047) words=(" substr(names["write"], 2) ") ;;"
				print rows "\tesac"
				print "\t[[ -n $format ]] && compset -P \047*,\047"
				print "\t_@NAME@_choice $words\n}\n"
			}
		' "$work/format_options"
	fi
	awk -F '\t' "$functions"'
		# What is done for a kind of value; `is_spec`: in an _arguments specification.
		function action(kind, is_spec, words, n, i, text) {
			if (kind == "file") return "_files"
			if (kind == "dir") return "_files -/"
			if (kind == "setting") return " _@NAME@_setting"
			if (kind ~ /^format-/) return " _@NAME@_format " substr(kind, 8)
			if (kind !~ /^(choice|list):/) return is_spec ? " " : "_message value"
			text = kind ~ /^choice:/ ? " _@NAME@_choice" : " _sequence compadd -"
			sub(/^[a-z]+:/, "", kind)
			n = split(kind, words, "|")
			for (i = 1; i <= n; i++) text = text " \"" words[i] "\""
			if (is_spec) gsub(/:/, "\\:", text)
			return text
		}
		function message(text) { gsub(/:/, "\\:", text); return text }
		function option(word, value, help, others) {
			gsub(/[][\\]/, "\\\\&", help)
			return " \\\n\t\t" quote(others word "[" help "]" value)
		}
		# None of these names is that of a command: those have no points.
		function name(command) { gsub(/ /, "-", command); return command == "-" ? "_@NAME@.program" : "_@NAME@-" command }
		$1 == "config" {
			rows = rows "\t(" pattern($3) ")" (action($5) ~ /^ / ? "" : " ") action($5) " ;;\n"
			if (stem($3) !~ / / && is_new(stem($3)))
				keys = keys " " stem($3) (stem($3) == $3 ? "=" : "")
			next
		}
		$2 == "" && $3 == "" { commands[++n] = $1; operands[$1] = $4; kinds[$1] = $5; summary[$1] = $6; next }
		{
			all = $2 != "" && $3 != "" ? "(-" $2 " --" $3 ")" : ""
			is_optional = $4 ~ /^\[/
			value = $5 == "none" ? "" : (is_optional ? "::" : ":") message($4) ":" action($5, 1)
			if (value != "") all = "*"
			if ($3 == "help") all = "(- *)"
			if ($2 != "") options[$1] = options[$1] option("-" $2 (value == "" ? "" : is_optional ? "-" : "+"), value, $6, all)
			if ($3 != "") options[$1] = options[$1] option("--" $3 (value == "" ? "" : is_optional ? "=-" : "="), value, $6, all)
		}
		END {
			if (rows != "") {
				print "# SECTION.KEY=VALUE"
				print "_@NAME@_setting() {\n\tlocal key=${PREFIX%%\\=*}\n"
				print "\tif ! compset -P 1 \047*=\047; then"
				print "\t\t_@NAME@_choice" keys "\n\t\treturn\n\tfi\n\tcase $key in\n" rows "\tesac\n}\n"
			}
			for (i = 1; i <= n; i++) {
				c = commands[i]
				verbs = ""
				for (j = 1; j <= n; j++)
					if (c == "-" ? commands[j] != "-" && commands[j] !~ / / : index(commands[j], c " ") == 1) {
						verb = commands[j]
						sub(/.* /, "", verb)
						verbs = verbs " \\\n\t\t" quote(verb ":" summary[commands[j]])
					}
				if (verbs != "")
					print name(c) ".verbs() {\n\tlocal -a verbs=(" verbs ")\n\n\t_describe verb verbs\n}\n"
				print name(c) "() {"
				if (c == "-" && verbs != "") {
					print "\tlocal curcontext=$curcontext state line ret=1\n\ttypeset -A opt_args\n"
					print "\t_arguments -C -S :" options[c] " \\\n\t\t\047: :" name(c) ".verbs\047 \047*:: :->command\047 && ret=0"
					print "\tif [[ $state == command ]] && (( $+functions[_@NAME@-$words[1]] )); then"
					print "\t\tcurcontext=${curcontext%:*:*}:@NAME@-$words[1]:"
					print "\t\t_@NAME@-$words[1] && ret=0\n\tfi\n\treturn ret\n}\n"
					continue
				}
				if (verbs != "") {
					print "\tif (( CURRENT > 2 )) && (( $+functions[" name(c) "-$words[2]] )); then"
					print "\t\tshift words\n\t\t(( CURRENT-- ))\n\t\t" name(c) "-$words[1]\n\t\treturn\n\tfi"
				}
				args = options[c]
				k = kinds[c] == "none" || kinds[c] == "command" ? 0 : split(kinds[c], kind, " ")
				if (verbs != "" && k == 0)
					args = args " \\\n\t\t" quote("1: :" name(c) ".verbs")
				else if (verbs != "")
					args = args " \\\n\t\t" quote("1: : _alternative verbs\\:verb\\:" name(c) ".verbs files\\:file\\:_files")
				else if (c == "help")
					args = args " \\\n\t\t" quote("1: :_@NAME@.program.verbs") " " quote("2: :_@NAME@.help")
				for (j = 1; j <= k && verbs == ""; j++)
					args = args " \\\n\t\t" quote((j == k && operands[c] ~ /\.\.\.$/ ? "*" : j) ":" message(operands[c]) ":" action(kind[j], 1))
				print "\t_arguments -s -S :" args "\n}\n"
			}
		}
	' "$work/options"
	if grep -q '^help	' "$work/options"; then
		cat <<'END'
# The verbs of the command before.
_@NAME@.help() {
	local verbs=_@NAME@-$words[CURRENT-1].verbs

	(( $+functions[$verbs] )) && $verbs
}

END
	fi
	printf '%s "$@"\n' '_@NAME@.program'
}

case $shell in
bash) print_bash ;;
zsh) print_zsh ;;
*)
	echo "completion.sh bash|zsh PROGRAM" >&2
	exit 2
	;;
esac | sed "s/@NAME@/$name/g"
