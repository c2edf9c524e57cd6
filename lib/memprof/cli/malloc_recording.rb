# frozen_string_literal: true

require_relative "program"

module Memprof
  module CLI
    # `memprof run --malloc`: a command whose Ruby processes record malloc to files.
    class MallocRecording < Command
      # What Program hands to the command.
      Settings = Struct.new(:to_env) do
        def signal = nil
      end
      private_constant :Settings

      def initialize(terminal, options, given)
        super(terminal)
        @options = options
        @given = given
      end

      def run(arguments)
        path = checked_path
        File.unlink(path) if File.file?(path)
        wanted = { record: path, stack: @options[:stack], native: @options[:native] }.compact
        variable = wanted.map { |name, value| "#{name}:#{value}" }.join(",")
        settings = Settings.new({ "MEMPROF_MALLOC" => variable })
        status = Program.new(arguments, settings, @terminal, feature: "memprof/malloc/autorun").run
        tell(path)
        status
      end

      private

      def tell(path)
        return @terminal.hint("Next: memprof malloc #{@options[:output]}") if File.exist?(path)

        @terminal.warn("no recording: no Ruby process wrote one")
      end

      def checked_path
        other = given.keys - %i[malloc output stack native]
        raise UsageError, "--#{other.first.to_s.tr("_", "-")} cannot be used with --malloc" if other.any?

        output = @options[:output]
        raise UsageError, "--malloc needs a file; give --output FILE" if output.nil? || output == "-"

        path = output_path(output)
        invalid("--output", output, "a path without a comma") if path.include?(",")
        path
      end
    end
  end
end
