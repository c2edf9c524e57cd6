# frozen_string_literal: true

require "etc"
require "socket"
require_relative "../dump/options"
require_relative "../printable"
require_relative "../session"

module Memprof
  module OnSignal
    # Environment settings for dumps requested from outside. An invalid value is reported as a problem, and
    # the default applies.
    #
    # Not MEMPROF_FORMAT: that is the report format of `memprof run`.
    class Settings
      SIGNAL = "MEMPROF_SIGNAL"
      DIRECTORY = "MEMPROF_DIR"
      FORMAT = "MEMPROF_DUMP_FORMAT"
      VALUES = "MEMPROF_DUMP_VALUES"
      COMPRESSION = "MEMPROF_DUMP_COMPRESSION"
      TRACK = "MEMPROF_TRACK"
      # Signals that Ruby reserves, and those that can't be caught.
      REFUSED = %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM CHLD CLD].freeze
      DEFAULT_SIGNAL = "URG"
      TEMPORARY = %w[TMPDIR TMP TEMP].freeze
      # The directory of last resort: writable even in a read-only container.
      SHARED_MEMORY = "/dev/shm"

      def self.catchable(text)
        name = text.upcase.delete_prefix("SIG")
        name if ::Signal.list.key?(name) && !REFUSED.include?(name)
      end

      attr_reader :signal, :directory, :options, :sample, :problems

      def initialize(env)
        @problems = []
        @signal = signal_of(text(env, SIGNAL) || DEFAULT_SIGNAL)
        @directory = given_directory(text(env, DIRECTORY)) || temporary_directory(env)
        @options = options_of(text(env, FORMAT), text(env, VALUES), text(env, COMPRESSION))
        @track, @sample = tracking_of(text(env, TRACK) || "on")
      end

      def track? = @track

      private

      def text(env, name)
        value = env[name]
        value unless value.nil? || value.empty?
      end

      def signal_of(text)
        name = Settings.catchable(text)
        return name if name

        @problems << "#{SIGNAL}=#{text} is not a signal that can be caught: " \
                     "none gives a dump (`memprof dump` does)"
        nil
      end

      def given_directory(text)
        return unless text

        path = File.expand_path(text)
        @problems << "#{DIRECTORY}=#{text} is not a writable directory: there will be no dumps" unless
          File.directory?(path) && File.writable?(path)
        path
      end

      # Not Dir.tmpdir: it falls back to the current directory, where no command looks.
      def temporary_directory(env)
        known = [*TEMPORARY.map { |name| text(env, name) }, Etc.systmpdir, "/tmp", SHARED_MEMORY].compact.uniq
        found = known.find { |path| path.start_with?("/") && takes_socket?(path) }
        @problems << "no directory takes dumps and the control socket, neither #{known.join(" nor ")}: " \
                     "set #{DIRECTORY} to one that can be written" unless found
        found
      end

      # Tries it, as the directory may be read-only, full, or on a file system without sockets. Like
      # Dir.tmpdir, rejects a directory in which any user can replace files.
      def takes_socket?(directory)
        stat = File.stat(directory)
        return false if !stat.directory? || (stat.world_writable? && !stat.sticky?)

        # As long as the socket's name.
        path = File.join(directory, "memprof-#{Random.urandom(4).unpack1("H*")}.tmp")
        socket = Socket.new(:UNIX, :STREAM)
        socket.bind(Addrinfo.unix(path))
        File.unlink(path)
        true
      rescue SystemCallError, ArgumentError # a path that is too long
        false
      ensure
        socket&.close
      end

      # Whether to track, and one object in how many to sample.
      def tracking_of(text)
        case text
        when "on" then [true, nil]
        when "off" then [false, nil]
        when /\Asample:([1-9]\d*)\z/
          number = Integer($1)
          return [true, number] if number <= Memprof::Session::MAX_SAMPLE

          not_tracking("N must be 1 to #{Memprof::Session::MAX_SAMPLE}", text)
        else
          not_tracking("expected on, off, or sample:N", text)
        end
      end

      # A user who set this wanted less than all objects.
      def not_tracking(problem, text)
        @problems << "invalid #{TRACK}=#{text}: #{problem}; objects are not tracked (`memprof start` does)"
        [false, nil]
      end

      def options_of(format, values, compression)
        Memprof::Dump::Options.new(format: format, values: values || :full, compression: compression)
      rescue ArgumentError => e
        @problems << "#{FORMAT}, #{VALUES} or #{COMPRESSION} is wrong, the defaults are taken: #{e.message}"
        # Omits contents if the invalid setting was meant to restrict them.
        Memprof::Dump::Options.new(values: values ? :none : :full)
      end
    end
  end
end
