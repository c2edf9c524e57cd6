# frozen_string_literal: true

module Memprof
  module CLI
    # Parses the options that {Flags} lists for a command.
    module Options
      # The options that the command takes.
      def flags = Flags.of(verb)

      private

      def define_options
        flags.each do |flag|
          parser.on(*flag.definition(verb)) { |given| flag.take(given, @options) }
          define_old(flag) if flag.was
        end
      end

      # The former name still works, but is not in the help.
      def define_old(flag)
        taken = proc do |given|
          @terminal.renamed(flag.was, flag.long)
          flag.take(given, @options)
        end
        switch, = parser.make_switch(flag.old_definition, taken)
        parser.top.long[flag.was.delete_prefix("--")] = switch
      end

      # The given value, or the default.
      def option(name) = @options.fetch(name) { flags.find { |flag| flag.key == name }&.default(verb) }

      # The named options, if given or with a default.
      def chosen(*names) = names.to_h { |name| [name, option(name)] }.compact

      def invalid(option, value, expected)
        raise UsageError, "invalid #{option} \"#{value}\"; expected #{expected}"
      end

      # A sample of objects is one in a number of them: see Flag::Sample.
      def check_sample
        sample = @options[:sample]
        invalid("--sample", sample, Flag::Count.new.expected) if sample.is_a?(String)
      end

      # Refuses the first of these that is on the command line.
      def refuse_options(names, why)
        name = (given.keys & names).first
        raise UsageError, "--#{name.to_s.tr("_", "-")} #{why}" if name
      end
    end
  end
end
