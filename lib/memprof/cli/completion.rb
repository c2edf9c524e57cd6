# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof completion`: a script with which a shell completes commands and options, generated from the
    # definitions of the help.
    class Completion < Command
      SHELLS = %w[bash zsh fish].freeze
      # Commands that take one of a few words.
      OPERANDS = { "help" => VERBS.keys, "completion" => SHELLS }.freeze
      private_constant :SHELLS, :OPERANDS

      SUMMARY = "prints a script that completes commands in a shell"
      USAGE = "SHELL"
      DETAILS = <<~TEXT
        SHELL is bash, zsh or fish.

        Examples:
          source <(memprof completion bash)
          memprof completion zsh > ~/.zfunc/_memprof
          memprof completion fish > ~/.config/fish/completions/memprof.fish
      TEXT

      def call(arguments)
        shell, = expect_arguments(arguments, "SHELL")
        unless SHELLS.include?(shell)
          raise UsageError, "unknown shell \"#{shell}\"; expected one of: #{SHELLS.join(", ")}"
        end

        @terminal.print(public_send(shell)) ? ExitStatus::DONE : ExitStatus::FAILED
      end

      def bash
        words = options.map do |verb, list|
          "    #{verb}) words=\"#{list.flat_map(&:names).join(" ")}\" ;;"
        end
        values = options.flat_map do |verb, list|
          list.select(&:words).map do |flag|
            patterns = flag.names.map { |name| "#{verb}:#{name}" }
            "    #{patterns.join("|")}) words=\"#{flag.words.join(" ")}\" ;;"
          end
        end
        <<~BASH
          # Completes the command memprof in bash: source <(memprof completion bash)
          _memprof() {
            local current=${COMP_WORDS[COMP_CWORD]} words=""
            COMPREPLY=()
            if [ "$COMP_CWORD" -eq 1 ]; then
              COMPREPLY=($(compgen -W "#{VERBS.keys.join(" ")} --help --version" -- "$current"))
              return
            fi
            case "${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}" in
          #{values.join("\n")}
          #{OPERANDS.map { |verb, operands| "    #{verb}:#{verb}) words=\"#{operands.join(" ")}\" ;;" }.join("\n")}
            esac
            if [ -z "$words" ]; then
              case "$current" in -*) ;; *) return ;; esac
              case "${COMP_WORDS[1]}" in
          #{words.join("\n")}
              esac
            fi
            COMPREPLY=($(compgen -W "$words" -- "$current"))
          }
          complete -o default -F _memprof memprof
        BASH
      end

      def zsh
        cases = options.map do |verb, list|
          specs = list.flat_map { |flag| zsh_option(flag, verb) }
          operands = OPERANDS[verb]
          specs << (operands ? "'1:word:(#{operands.join(" ")})'" : "'*:file:_files'")
          "    #{verb}) _arguments -S #{specs.join(" ")} ;;"
        end
        <<~ZSH
          #compdef memprof
          # Completes the command memprof in zsh: a file _memprof in a directory of fpath
          _memprof() {
            local -a commands
            commands=(
          #{verbs.map { |verb, summary| "    #{quoted("#{verb}:#{summary}")}" }.join("\n")}
            )
            if (( CURRENT == 2 )); then
              _describe command commands
              return
            fi
            local verb=$words[2]
            (( CURRENT-- ))
            shift words
            case $verb in
          #{cases.join("\n")}
            esac
          }
          if [ "$funcstack[1]" = _memprof ]; then _memprof "$@"; else compdef _memprof memprof; fi
        ZSH
      end

      def fish
        lines = verbs.map do |verb, summary|
          "complete -c memprof -n __fish_use_subcommand -f -a #{verb} -d #{fish_quoted(summary)}"
        end
        options.each do |verb, list|
          list.each do |flag|
            names = ["-l #{flag.long.delete_prefix("--")}",
              ("-s #{flag.short.delete_prefix("-")}" if flag.short), ("-r" if flag.value),
              ("-f -a '#{flag.words.join(" ")}'" if flag.words)]
            names << "-d #{fish_quoted(flag.sentence(verb))}"
            lines << "complete -c memprof -n '__fish_seen_subcommand_from #{verb}' #{names.compact.join(" ")}"
          end
        end
        OPERANDS.each do |verb, words|
          lines << "complete -c memprof -n '__fish_seen_subcommand_from #{verb}' -f -a '#{words.join(" ")}'"
        end
        "# Completes the command memprof in fish\n#{lines.join("\n")}\n"
      end

      private

      def verbs = VERBS.to_h { |verb, name| [verb, CLI.const_get(name)::SUMMARY] }

      def options = verbs.keys.to_h { |verb| [verb, Flags.of(verb)] }

      # In zsh, colons and brackets are special.
      def zsh_option(flag, verb)
        text = flag.sentence(verb).gsub(/[\[\]:\\]/) { |character| "\\#{character}" }
        values = flag.words ? "(#{flag.words.join(" ")})" : "_files"
        argument = ":#{flag.value.delete("[]")}:#{values}" if flag.value
        flag.names.map { |name| quoted("#{name}[#{text}]#{argument}") }
      end

      def quoted(text) = "'#{text.gsub("'", "'\\\\''")}'"

      def fish_quoted(text) = "'#{text.gsub(/['\\]/) { |character| "\\#{character}" }}'"
    end
  end
end
