# frozen_string_literal: true

module Memprof
  module CLI
    # The manual page of the command, with the text of the help, in man(7) macros.
    class ManPage
      def initialize(terminal)
        @terminal = terminal
      end

      def to_s = [head, *VERBS.keys.map { |verb| section(verb) }, files].join

      private

      def head
        <<~ROFF
          .TH MEMPROF 1 "" "memprof #{escaped(VERSION)}" "User Commands"
          .SH NAME
          memprof \\- which lines of a Ruby program allocate objects, which are retained, and why
          .SH SYNOPSIS
          .B memprof
          .IR TARGET ...
          .br
          .B memprof
          .I COMMAND
          [OPTIONS] [ARGUMENTS]
          .SH COMMANDS
        ROFF
      end

      def files
        <<~ROFF
          .SH FILES
          .TP
          .B .memprof.yml
          Options of commands in this directory, as
          .I run: {stack: 16}
          in YAML; MEMPROF_CONFIG names another file.
          .SH SEE ALSO
          The documentation that comes with the gem, in its directory docs.
        ROFF
      end

      def section(verb)
        command = CLI.command(verb, @terminal)
        usage = "memprof #{verb} #{command.class::USAGE}"
        summary = command.class::SUMMARY
        ".SS #{escaped(usage)}\n#{text(summary.sub(/\A./, &:upcase))}.\n" \
          "#{Flags.of(verb).map { |flag| option(flag, verb) }.join}#{details(command.class::DETAILS)}"
      end

      def option(flag, verb)
        names = flag.names.reverse.map { |name| "\\fB#{escaped(name)}\\fR" }
        argument = flag.value && " \\fI#{escaped(flag.value)}\\fR"
        ".TP\n#{names.join(", ")}#{argument}\n#{text(flag.sentence(verb))}\n"
      end

      # Paragraphs; indented text and examples are not filled.
      def details(text)
        text.split(/\n{2,}/).map do |block|
          is_filled = block.lines.none? { |line| line.start_with?(" ") }
          is_filled ? ".PP\n#{text(block.chomp)}\n" : ".PP\n.nf\n#{text(block.chomp)}\n.fi\n"
        end.join
      end

      # A line that begins with a dot or a quote would be a macro.
      def text(lines) = lines.lines.map { |line| escaped(line).sub(/\A(?=[.'])/, "\\\\&") }.join

      def escaped(text) = text.gsub("\\", "\\e").gsub("-", "\\-")
    end
  end
end
