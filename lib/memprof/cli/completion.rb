# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof completion`: a script with which a shell completes commands and options. It is made of the same
    # definitions as the help.
    class Completion < Command
      SHELLS = %w[bash zsh fish].freeze
      # An option: its names, what it takes (nil for nothing), what it does.
      Option = Struct.new(:long, :short, :argument, :description)
      private_constant :SHELLS, :Option

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
        shell, *rest = arguments
        raise UsageError, "SHELL is missing; see `memprof help completion`" unless shell
        raise UsageError, "unexpected arguments: #{rest.join(" ")}" unless rest.empty?
        unless SHELLS.include?(shell)
          raise UsageError, "unknown shell \"#{shell}\"; expected one of: #{SHELLS.join(", ")}"
        end

        @terminal.print(public_send(shell)) ? 0 : 2
      end

      def bash
        words = options.map do |verb, list|
          names = list.flat_map { |option| [option.long, option.short] }
          "    #{verb}) words=\"#{names.compact.join(" ")}\" ;;"
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
            case "$current" in -*) ;; *) return ;; esac
            case "${COMP_WORDS[1]}" in
          #{words.join("\n")}
            esac
            COMPREPLY=($(compgen -W "$words" -- "$current"))
          }
          complete -o default -F _memprof memprof
        BASH
      end

      def zsh
        cases = options.map do |verb, list|
          specs = list.flat_map { |option| zsh_option(option) }
          "    #{verb}) _arguments -S #{specs.join(" ")} '*:file:_files' ;;"
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
          list.each do |option|
            names = [("-l #{option.long.delete_prefix("--")}" if option.long),
              ("-s #{option.short.delete_prefix("-")}" if option.short), ("-r" if option.argument)]
            names << "-d #{fish_quoted(option.description)}"
            lines << "complete -c memprof -n '__fish_seen_subcommand_from #{verb}' #{names.compact.join(" ")}"
          end
        end
        "# Completes the command memprof in fish\n#{lines.join("\n")}\n"
      end

      private

      def verbs = VERBS.to_h { |verb, name| [verb, CLI.const_get(name)::SUMMARY] }

      def options
        VERBS.keys.to_h do |verb|
          [verb, CLI.command(verb, @terminal).switches.map { |switch| option(switch) }]
        end
      end

      def option(switch)
        Option.new(switch.long.first, switch.short.first&.then { |short| "-#{short.delete_prefix("-")}" },
          switch.arg&.strip, switch.desc.join(" "))
      end

      # In zsh a colon and a bracket mean something.
      def zsh_option(option)
        text = option.description.gsub(/[\[\]:\\]/) { |character| "\\#{character}" }
        argument = ":#{option.argument.delete("[]:=")}:_files" if option.argument
        [option.long, option.short].compact.map { |name| quoted("#{name}[#{text}]#{argument}") }
      end

      def quoted(text) = "'#{text.gsub("'", "'\\\\''")}'"

      def fish_quoted(text) = "'#{text.gsub(/['\\]/) { |character| "\\#{character}" }}'"
    end
  end
end
