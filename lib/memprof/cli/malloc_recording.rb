# frozen_string_literal: true

require_relative "../native"

module Memprof
  module CLI
    # `memprof run --malloc`: a command, Ruby or not, that records malloc to files, like all Ruby processes
    # that it starts.
    class MallocRecording < Command
      # Same as Malloc::MAX_STACK.
      MALLOC_FRAMES = 512
      # Maximum number of other processes' files that are listed.
      LISTED = 5
      private_constant :MALLOC_FRAMES, :LISTED

      def initialize(terminal, options, given)
        super(terminal)
        @options = options
        @given = given
      end

      def run(arguments)
        path = checked_path
        File.unlink(path) if File.file?(path)
        before = of_processes(path)
        wanted = { record: path, sample: sample, **@options.slice(:stack, :native, :addresses) }.compact
        environment = { "MEMPROF_MALLOC" => wanted.map { |name, value| "#{name}:#{value}" }.join(",") }
        environment.merge!(preload) unless Program.ruby?(arguments.first)
        program = Program.new(arguments, environment, @terminal, feature: "memprof/malloc/autorun")
        status = program.run
        take_own(path, program.pid) if environment.key?("LD_PRELOAD") && program.pid
        report_result(path, of_processes(path).reject { |other, time| before[other] == time }.keys)
        status
      end

      private

      # Without a libruby to preload, only the Ruby processes that the command starts are recorded.
      def preload
        load_library
        environment = MallocPreload.environment
        @preloaded = !environment.nil?
        environment.to_h
      end

      # A program other than Ruby may start one, so it leaves FILE to that.
      def take_own(path, pid)
        extension = File.extname(path)
        own = "#{path.delete_suffix(extension)}.#{pid}#{extension}"
        File.rename(own, path) if File.file?(own) && !File.exist?(path)
      rescue SystemCallError => e
        @terminal.warn("the recording is #{own}: #{Output.reason(e)}")
      end

      # Each process but the first, or its exec successor, writes a file of its own.
      def of_processes(path)
        directory, name = File.split(path)
        extension = File.extname(name)
        # Other files may have names that are not valid text.
        stem, ending = [name.delete_suffix(extension), extension].map { |part| Regexp.escape(part.b) }
        own = Regexp.new("\\A#{stem}\\.\\d+#{ending}\\z", Regexp::NOENCODING)
        paths = Dir.children(directory).select { |other| own.match?(other.b) }
        paths = paths.map { |other| File.join(directory, other) }
        paths.to_h { |other| [other, File.stat(other).then { |stat| [stat.ino, stat.mtime] }] }
      rescue SystemCallError
        {}
      end

      def report_result(path, others)
        all = [path, *others].select { |one| File.exist?(one) }
        return report_none if all.empty?

        @terminal.warn("also recorded: #{list(path, others)}") if others.any?
        @terminal.hint("Next: memprof malloc #{Suggestion.word(shown(path, most_telling(all)))}")
      end

      def report_none
        why = "; #{MallocPreload::MISSING}" if @preloaded == false
        @terminal.warn("no recording: no process wrote one#{why}")
      end

      # The first, unless another one is far larger.
      def most_telling(paths)
        largest = paths.max_by { |path| File.size(path) }
        (File.size(largest) > 2 * File.size(paths.first)) ? largest : paths.first
      end

      def list(path, others)
        names = others.sort_by { |one| [-File.size(one), one] }.first(LISTED).map { |one| shown(path, one) }
        more = others.size - names.size
        "#{names.join(", ")}#{" and #{Units.count(more)} more" if more.positive?}"
      end

      # A path beside the requested file, in the user's notation.
      def shown(path, other)
        asked = @options[:output]
        return asked if other == path

        File.join(*[File.dirname(asked)].grep_v("."), File.basename(other).b)
      end

      def sample
        size = given[:sample] or return given[:sample_bytes]

        @terminal.renamed("--sample of --malloc", "--sample-bytes")
        Flags::SIZE.read(size.to_s)
      end

      def checked_path
        refuse_options(given.keys - %i[malloc output stack native addresses sample sample_bytes],
          "cannot be used with --malloc")
        output = @options[:output]
        raise UsageError, "--malloc needs a file; give --output FILE" if output.nil? || output == "-"

        stack = @options[:stack]
        invalid("--stack", stack, "a number of at most #{MALLOC_FRAMES}") if stack && stack > MALLOC_FRAMES

        path = output_path(output)
        invalid("--output", output, "a path without a comma") if path.include?(",")
        path
      end
    end

    # Preloads memprof's extension into a program other than Ruby, so that it records its malloc. The
    # extension needs libruby to be loaded, though it calls nothing in it there.
    module MallocPreload
      MISSING = "this Ruby has no libruby to preload (it was built without --enable-shared)"

      class << self
        # The environment for the program; nil if this Ruby has no libruby to preload, as it was built without
        # --enable-shared.
        def environment
          libraries = [libruby, extension]
          return unless libraries.all?

          before = ENV.fetch("LD_PRELOAD", "")
          { "LD_PRELOAD" => [*libraries, before].reject(&:empty?).join(" "), "MEMPROF_PRELOAD" => before }
        end

        private

        def libruby
          File.foreach("/proc/self/maps") do |line|
            path = line.chomp[%r{/.*}]
            return path if path && File.basename(path).start_with?("libruby") && path.include?(".so")
          end
          nil
        rescue SystemCallError
          nil
        end

        def extension = $LOADED_FEATURES.find { |path| File.basename(path) == "memprof.so" }
      end
    end
  end
end
