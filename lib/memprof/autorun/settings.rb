# frozen_string_literal: true

module Memprof
  module Autorun
    # What `memprof run` was asked for, on its way through the environment to the processes that are tracked.
    #
    # Plain strings, one variable each: a program under Bundler must not find a json or stringio loaded that
    # is not the one of its lockfile, and `docker run --env` or a Procfile can set them as well.
    class Settings
      READERS = {
        output: :itself.to_proc,     # path of the report; `%p` is the process id
        format: :to_sym.to_proc,
        limit: Kernel.method(:Integer),
        after_boot: "1".method(:==), # track from the first request, example, test or job on
        peak: "1".method(:==),       # find when memory is largest, and by which sites
        sample: Kernel.method(:Integer),
        stack: Kernel.method(:Integer),
        value: :to_sym.to_proc,      # what a drawing of stacks shows: :allocated_bytes and so on
        ignore_files: Regexp.method(:new),
        allow_files: Regexp.method(:new),
        trace: ->(names) { names.split(",") },
        tracing: "1".method(:==), # what the process does, in place of which lines allocate
        internal: "1".method(:==), # with a row for each class such as `<iseq>`
        no_internal: "1".method(:==), # without them, also in totals
        scale_bytes: "1".method(:==), # for :memory_profiler
        color: :to_sym.to_proc, # :always, :never, or :main, the process whose report goes to the screen
        signal: :itself.to_proc,
        run_directory: :itself.to_proc, # where processes report to `memprof run`
        run_parent: Kernel.method(:Integer) # the process id of `memprof run`
      }.freeze

      EXTENSIONS = {
        text: ".txt", json: ".json", markdown: ".md", memory_profiler: ".txt", collapsed: ".folded",
        speedscope: ".speedscope.json", firefox: ".firefox.json", pprof: ".pb.gz"
      }.freeze

      # Formats that hold call stacks, so that they are of little use without them.
      STACKED = %i[collapsed speedscope firefox pprof].freeze

      # What stands for the ending of a file name, so that `report.pb.gz` becomes `report.4711.pb.gz`.
      ENDING = /(?:\.(?:pb|speedscope|firefox|profile))?\.[^.]+\z/
      private_constant :ENDING

      attr_reader(*READERS.keys)

      def self.from_env(env)
        values = READERS.filter_map do |name, reader|
          text = env[variable(name)]
          # A path is bytes; the locale's encoding, which may be plain ASCII, must not get in its way.
          [name, reader.call(text.dup.force_encoding(Encoding::UTF_8))] unless text.nil? || text.empty?
        end
        new(**values.to_h)
      rescue RegexpError => e
        raise ArgumentError, e.message
      end

      # The format that a path's extension stands for; nil for text, or an extension of none.
      def self.format_of(path)
        EXTENSIONS.reject { |_, extension| extension == ".txt" }
          .select { |_, extension| path.end_with?(extension) }.max_by { |_, extension| extension.size }&.first
      end

      def self.variable(name) = "MEMPROF_#{name.upcase}"

      def initialize(**values)
        values = { format: :text, value: :allocated_bytes, color: :never }.merge(values)
        READERS.each_key { |name| instance_variable_set(:"@#{name}", values[name]) }
        raise ArgumentError, "unknown format: #{format}" unless EXTENSIONS.key?(format)

        @stack ||= STACKED.include?(format) ? 64 : 1
      end

      def to_env = READERS.to_h { |name, _| [self.class.variable(name), text(public_send(name))] }

      # Where a process writes. The one that was started by `memprof run` itself gets the name as it is, any
      # other one its id in it; so does each when the name has a `%p`.
      def path(pid, main:, serial: nil)
        path = output || "memprof.%p#{EXTENSIONS.fetch(format)}"
        return path if special?(path)

        directory, name = File.split(path)
        name = insert(name, ".%p") unless main || name.include?("%p")
        name = insert(name, "-#{serial}") if serial
        File.expand_path(name.gsub("%p", pid.to_s), directory)
      end

      # A device or a pipe is written as it is: nothing may be renamed over it.
      def special?(path) = File.exist?(path) && !File.file?(path)

      private

      def insert(name, part)
        ending = name[1..].to_s[ENDING].to_s # a leading dot begins no ending
        "#{name.delete_suffix(ending)}#{part}#{ending}"
      end

      def text(value)
        case value
        when Regexp then value.source
        when Array then value.join(",")
        when true then "1"
        when nil, false then nil
        else value.to_s
        end
      end
    end
  end
end
