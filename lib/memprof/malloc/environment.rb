# frozen_string_literal: true

module Memprof
  module Malloc
    # The settings in `MEMPROF_MALLOC`: a recording from the load of memprof/malloc to the end of the process,
    # and a dump of it then. Settings are separated by commas: `dump_path:FILE` (appended to), `dump_fd:N`,
    # `dump_min:BYTES`, `table:ROWS` (a table instead of lines), `sample:SIZE`; or `record:FILE`, with
    # `stack:N`, `native:true`, `addresses:true`, `sample:SIZE`: a recording to a file.
    class Environment
      # Settings of a recording to a file.
      RECORDED = %w[record stack native addresses].freeze
      SETTINGS = (%w[dump_path dump_fd dump_min table sample] + RECORDED).freeze
      private_constant :RECORDED, :SETTINGS

      # Starts what the variable asks for; a mistake in it only warns, as the program must run.
      def self.start(text)
        new(text).start unless text.to_s.empty?
      rescue ArgumentError, Error => e
        warn "memprof: malloc is not recorded: #{e.message}"
      end

      def initialize(text)
        # A path may contain bytes that are not text.
        settings = text.b.split(",").map { |setting| setting.force_encoding(text.encoding) }
        @settings = settings.to_h { |setting| pair(setting) }
        unknown = @settings.keys - SETTINGS
        raise ArgumentError, "unknown setting #{unknown.first.inspect} in MEMPROF_MALLOC" if unknown.any?

        @min = number("dump_min", 0)
        @descriptor = number("dump_fd", 2)
        @rows = number("table", nil)
        @recording = @settings["record"]
        @stack = number("stack", nil)
        @native = flag("native")
        @addresses = flag("addresses")
        keys = @settings.keys
        other = @recording ? keys - RECORDED - ["sample"] : keys & RECORDED
        return if other.empty?

        raise ArgumentError, "#{other.first} cannot be set #{@recording ? "with" : "without"} record"
      end

      def start
        return record if @recording
        return unless Malloc.start(sample: @settings["sample"])

        at_exit { dump }
        note("records")
      end

      private

      def record
        options = { native: @native, addresses: @addresses, sample: @settings["sample"], stack: @stack }
        path = own(@recording)
        Malloc.record(path, **options.compact)
      rescue Error
        File.unlink(path) if path && File.zero?(path)
        raise
      end

      # The first process gets the path; others insert their process id.
      def own(path)
        raise Error, "cannot write #{path}: it is a directory" if File.directory?(path)

        File.open(path, File::WRONLY | File::CREAT | File::EXCL, 0o600).close
        path
      rescue Errno::EEXIST
        extension = File.extname(path)
        "#{path.delete_suffix(extension)}.#{Process.pid}#{extension}"
      rescue SystemCallError => e
        raise Output.failure(path, e)
      end

      def pair(setting)
        name, _, value = setting.b.partition(":")
        raise ArgumentError, "#{name} has no value" if value.empty? && SETTINGS.include?(name)

        [name.force_encoding(Encoding::UTF_8), value.force_encoding(setting.encoding)]
      end

      def number(name, default)
        text = @settings.fetch(name) { return default }
        number = Integer(text, 10, exception: false)
        return number unless number.nil? || number.negative?

        raise ArgumentError, "#{name} must be a number, not #{text.inspect}"
      end

      def flag(name)
        text = @settings.fetch(name) { return false }
        return text == "true" if %w[true false].include?(text)

        raise ArgumentError, "#{name} must be true or false, not #{text.inspect}"
      end

      def dump
        path = @settings["dump_path"]
        if path
          File.open(path, File::WRONLY | File::APPEND | File::CREAT, 0o600) { |file| write(file) }
        else
          write(IO.for_fd(@descriptor, "w", autoclose: false))
        end
      rescue SystemCallError, IOError => e
        warn "memprof: no dump of malloc: #{path ? Output.failure(path, e).message : e.message}"
      ensure
        note("reported")
      end

      # A note for `memprof malloc`, which explains why there is no report.
      def note(text)
        path = ENV.fetch("MEMPROF_MALLOC_NOTE", nil)
        File.write(path, "#{text}\n", mode: "a") if path && File.file?(path)
      rescue SystemCallError
        nil # the process has other privileges
      end

      def write(io)
        return Malloc.dump(io, @min) unless @rows

        Malloc.stop
        io.write("malloc of #{$PROGRAM_NAME}, process #{Process.pid}: #{Malloc.table(limit: @rows)}")
      end
    end
  end
end
