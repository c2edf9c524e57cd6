# frozen_string_literal: true

module Memprof
  module Autorun
    # Settings of `memprof run`, passed through the environment to the tracked processes.
    #
    # Plain strings, one variable each: a program under Bundler must not find a json or stringio loaded that
    # differs from its lockfile, and `docker run --env` or a Procfile can set them as well.
    class Settings
      READERS = {
        output: :itself.to_proc,     # path of the report; `%p` is the process id
        format: :to_sym.to_proc,
        limit: Kernel.method(:Integer),
        after_boot: "1".method(:==), # track from the first request, example, test, job or task
        peak: "1".method(:==),       # find when memory peaks, and at which sites
        sample: Kernel.method(:Integer),
        stack: Kernel.method(:Integer),
        value: :to_sym.to_proc,      # value of stack drawings: :allocated_bytes and so on
        ignore_files: Regexp.method(:new),
        allow_files: Regexp.method(:new),
        trace: ->(names) { names.split(",") },
        tracing: "1".method(:==), # trace calls instead of tracking allocating lines
        internal: "1".method(:==), # list classes such as `<iseq>`
        no_internal: "1".method(:==), # omit them, also in totals
        scale_bytes: "1".method(:==), # for :memory_profiler
        color: :to_sym.to_proc, # :always, :never, or :main, the process whose report goes to the screen
        signal: :itself.to_proc,
        run_directory: :itself.to_proc, # where processes post their notices
        run_parent: Kernel.method(:Integer) # the process id of `memprof run`
      }.freeze

      EXTENSIONS = {
        text: ".txt", json: ".json", markdown: ".md", memory_profiler: ".txt", collapsed: ".folded",
        speedscope: ".speedscope.json", firefox: ".firefox.json", pprof: ".pb.gz"
      }.freeze

      # Formats with call stacks, which are of little use without any.
      STACKED = %i[collapsed speedscope firefox pprof].freeze

      # The extension of a file name, so that `report.pb.gz` becomes `report.4711.pb.gz`.
      ENDING = /(?:\.(?:pb|speedscope|firefox|profile))?\.[^.]+\z/
      private_constant :ENDING

      attr_reader(*READERS.keys)

      def self.from_env(env)
        values = READERS.filter_map do |name, reader|
          text = env[variable(name)]
          # A path is bytes, whatever the locale's encoding, which may be plain ASCII.
          [name, reader.call(text.dup.force_encoding(Encoding::UTF_8))] unless text.nil? || text.empty?
        end
        new(**values.to_h)
      rescue RegexpError => e
        raise ArgumentError, e.message
      end

      # The format of a path's extension; nil for text or an unknown extension.
      def self.format_of(path)
        EXTENSIONS.reject { |_, extension| extension == ".txt" }
          .select { |_, extension| path.end_with?(extension) }.max_by { |_, extension| extension.size }&.first
      end

      def self.variable(name) = "MEMPROF_#{name.upcase}"

      def initialize(**values)
        values = { format: :text, value: :allocated_bytes, color: :never }.merge(values)
        READERS.each_key { |name| instance_variable_set(:"@#{name}", values[name]) }
        raise ArgumentError, "unknown format #{format.inspect}" unless EXTENSIONS.key?(format)

        @stack ||= STACKED.include?(format) ? 64 : 1
      end

      def to_env = READERS.to_h { |name, _| [self.class.variable(name), text(public_send(name))] }

      # The output path of a process. The process started by `memprof run` itself uses the name as it is, any
      # other inserts its id; so does every process if the name has a `%p`.
      def path(pid, main:, serial: nil)
        path = output || "memprof.%p#{EXTENSIONS.fetch(format)}"
        return path if special?(path)

        directory, name = File.split(path)
        name = insert(name, ".%p") unless main || name.include?("%p")
        name = insert(name, "-#{serial}") if serial
        File.expand_path(name.gsub("%p", pid.to_s), directory)
      end

      # A device or a pipe is written to directly: no file may be renamed over it.
      def special?(path) = File.exist?(path) && !File.file?(path)

      private

      def insert(name, part)
        ending = name[1..].to_s[ENDING].to_s # a leading dot does not start an extension
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
