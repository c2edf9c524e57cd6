# frozen_string_literal: true

require "optparse"

module Memprof
  module Compat
    # The command line of memprof 0.3, `memprof --pid PID --name NAME`. It uploaded a dump to memprof.com,
    # which no longer exists; now the dump goes to the user's own server, or to this machine's library.
    # Messages and exit status 1 are those of memprof 0.3.
    class Uploader
      BANNER = "\nMemprof Uploader\nhttp://www.memprof.com\n#{"=" * 32}\n\n"
      DEFAULT_SECONDS = 300
      NOTE = <<~TEXT

        memprof.com no longer exists. --url (or MEMPROF_URL) uploads the dump to your own
        server, which runs `memprof web --library` and shows the key (or MEMPROF_KEY).
        Without --url the dump goes to the library of this machine (MEMPROF_LIBRARY, or
        ~/.local/share/memprof), which `memprof web --library` shows. To get only a file,
        use `memprof dump PID`; see `memprof --help`.
      TEXT
      # For `memprof help`.
      HINT = <<~TEXT.chomp
        The command line of memprof 0.3 (Memprof Uploader) still works:
        memprof --pid PID --name NAME; see `memprof --pid PID --help`.
      TEXT
      # Environment variables used in place of options.
      VARIABLES = { url: "MEMPROF_URL", key: "MEMPROF_KEY" }.freeze
      # Options that no other form of the command accepts before its targets.
      OWN = /\A(?:-[pnkudst]|--(?:pid|name|key|url|seconds|info|put-my-data|(?:no-)?delete|(?:no-)?test)\b)/
      private_constant :BANNER, :DEFAULT_SECONDS, :NOTE, :VARIABLES, :OWN

      autoload :Info, "#{__dir__}/uploader/info"
      autoload :Keep, "#{__dir__}/uploader/keep"
      autoload :SignalDump, "#{__dir__}/uploader/signal_dump"
      autoload :Upload, "#{__dir__}/uploader/upload"

      # A failure: a line in red, exit status 1.
      class Failure < StandardError; end

      # Wrong usage: the same, below the usage.
      class Misuse < Failure; end

      def self.options?(arguments) = arguments.grep(OWN).any?

      def initialize(terminal)
        @terminal = terminal
        @options = { seconds: DEFAULT_SECONDS }
      end

      def start(arguments)
        @terminal.print(BANNER)
        parser.parse(arguments)
        return help if @options[:help]
        return Info.new(@terminal).show if @options[:info]

        run
        @terminal.puts("Finished!")
        0
      rescue OptionParser::ParseError, Misuse => e
        fail_with(e.message.lines.first.chomp, usage: "#{parser.help}\n")
      rescue Failure, Error, SystemCallError => e
        fail_with(e.message.lines.first.chomp)
      end

      private

      def run
        check
        return run_with_file(@options[:file]) if @options[:file]

        keep = !@options.fetch(:delete, true)
        SignalDump.new(target, @terminal, @options[:seconds]).take(keep: keep) do |path, dump|
          deliver(path, dump) unless @options[:test]
        end
        @terminal.puts("Deleted dump file.") unless keep
      end

      def run_with_file(path)
        deliver(path, path) unless @options[:test]
        return unless @options[:delete]

        File.unlink(path)
        @terminal.puts("Deleted dump file.")
      end

      # `place` is the path that the dump keeps if it can't be delivered.
      def deliver(path, place)
        return Upload.new(path, place, @terminal, @options).run if @options[:url]

        Keep.new(path, @terminal, @options).run
      rescue Error => e
        raise Failure, "#{e.message.lines.first.chomp}. The dump is still at #{place}"
      end

      # Checks in the order of the old command.
      def check
        given = @options[:file]
        VARIABLES.each { |name, variable| @options[name] ||= [ENV[variable].to_s].reject(&:empty?).first }
        raise Misuse, "Missing PID! (-p PID)" unless @options[:pid] || given
        raise Misuse, "Missing name! (-n 'my application')" unless @options[:name]
        raise Failure, "File not found: #{given}" if given && !File.file?(given)
        check_server if @options[:url]
      end

      # Checked before the process is asked to dump.
      def check_server
        Upload.address(@options[:url])
        raise Misuse, "Missing API key! (-k KEY)" unless @options[:key]
        raise Misuse, "The API key contains a line break" if @options[:key].match?(/[\r\n]/)
      end

      def target
        CLI::Target.new(@options[:pid]).tap(&:check)
      rescue Errno::ESRCH, RangeError
        raise Failure, "No such process #{@options[:pid]}!"
      rescue Errno::EPERM
        raise Failure, "Not permitted to signal process #{@options[:pid]}!"
      end

      def help = @terminal.print("#{parser.help}#{NOTE}") ? 0 : 1

      def fail_with(message, usage: nil)
        message = Paint.new(@terminal.color?).call(Printable.line(message), :red)
        @terminal.puts("#{usage}#{message}")
        1
      end

      def parser
        OptionParser.new(nil, 32, "    ") do |parser|
          parser.banner = "Usage: memprof --pid PID --name NAME [OPTIONS]"
          parser.separator("")
          define_what(parser)
          define_how(parser)
          parser.on("-h", "--help", "Show this message") { @options[:help] = true }
        end
      end

      def define_what(parser)
        set(parser, "-p", "--pid PID", Integer, "Process ID to dump (required)", :pid)
        set(parser, "-n", "--name NAME", "Name of your application (required)", :name)
        set(parser, "-f", "--file PATH", "Use an existing dump instead", :file)
        set(parser, "-k", "--key KEY", "API key of the server (or MEMPROF_KEY, hidden from `ps`)", :key)
        set(parser, "-u", "--url URL", "Server to upload to (or MEMPROF_URL; default: none, the",
          "library of this machine)", :url)
        set(parser, "--put-my-data-on-the-internet", "Accepted and ignored: --url decides", :upload)
      end

      def define_how(parser)
        set(parser, "-d", "--[no-]delete", "Delete the file that the process wrote (default: true;",
          "with --file: false)", :delete)
        set(parser, "-s", "--seconds SECONDS", Integer,
          "Timeout of the dump (default: #{DEFAULT_SECONDS})", :seconds)
        set(parser, "-t", "--[no-]test", "Dry run: neither upload nor keep the dump", :test)
        set(parser, "--info", "Show details of this Ruby, for bug reports", :info)
      end

      def set(parser, *definition, name) = parser.on(*definition) { |value| @options[name] = value }
    end
  end
end
