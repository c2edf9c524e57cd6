# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof web`: dumps in a browser.
    class Web < Command
      autoload :LibraryServer, "#{__dir__}/library_server"

      SIGNALS = %w[INT TERM].freeze
      BROWSERS = %w[xdg-open open].freeze
      private_constant :SIGNALS, :BROWSERS

      SUMMARY = "shows dumps in a browser"
      USAGE = "[OPTIONS] FILE... | --library [DIR]"
      DETAILS = <<~TEXT
        Serves pages to this machine only, until you press Ctrl-C. The printed URL has a
        token that works once. Your own token (--token) works every time; scripts send
        it as `Authorization: Bearer TOKEN`. Add .json to a page's path to get JSON.

        FILE may also be a log of traced requests (see memprof trace), a JSON report
        (memprof run --format json), requires (memprof boot --json), the output of
        memprof track, or a recording of malloc (memprof run --malloc).

        --library shows the dumps of a directory (default: MEMPROF_LIBRARY, or
        ~/.local/share/memprof), and accepts uploads from
        `memprof --pid PID --name NAME --key KEY --url URL`, also on other machines.

        Examples:
          memprof web heap.memprof
          memprof web --no-open --port 7000 before.memprof after.memprof
          memprof web --library
          memprof web --library /srv/dumps --bind 0.0.0.0 --host dumps.example
      TEXT

      def call(arguments)
        check_library(arguments)
        arguments.each { |file| check_readable(file, stdin: false) }
        load_library
        require_relative "../web"
        require_relative "../web/server"
        serve(arguments)
      end

      private

      def check_library(files)
        return if @options[:library]

        refuse_options(LibraryServer::OPTIONS, "needs --library")
        raise UsageError, "FILE is missing; see `memprof help web`" if files.empty?
      end

      def arrange(arguments) = parser.permute(arguments)

      def serve(files)
        gate = Memprof::Web::Gate::Token.new(@options[:token])
        app = application(files, gate)
        bind = option(:bind)
        server = Memprof::Web::Server.new(app, bind: bind, port: @options.fetch(:port, 0))
        until_stopped do |stop|
          server.start
          announce("#{server.url}?token=#{URI.encode_www_form_component(gate.token)}")
          @terminal.hint(@library_server.hint(server.url)) if @library_server
          stop.pop
          server.stop
        end
        app.heaps.close_all
        0
      end

      def application(files, gate)
        Memprof::Web::Router.standard # before the thread that opens heaps needs a page
        @library_server = LibraryServer.new(@options.merge(chosen(:max_upload))) if @options[:library]
        library = @library_server&.library
        heaps = Memprof::Web::Heaps.new(library: library, **chosen(:max_open), **reading)
        files.each { |file| add(heaps, file) }
        # While the browser starts, there is time to prefetch the first page.
        heaps.first&.prepare { |entry| Memprof::Web::Prefetch.new(heaps).run(entry) }
        hosts = Memprof::Web::Security::Hosts.new(@options.values_at(:bind, :host).compact)
        Memprof::Web.new(heaps: heaps, gate: gate, hosts: hosts, uploads: @library_server&.uploads)
      end

      def reading
        { index: !@options[:no_index], ignore_stack_roots: @options.fetch(:ignore_stack_roots, false) }
      end

      def add(heaps, file)
        kind = FileKind.of(file)
        return heaps.records.add(file, kind) unless [nil, :heap, :core].include?(kind)

        heaps.add(file, **reading)
      end

      # Waits for a signal outside the trap handler, where locks can't be taken.
      def until_stopped
        stop = Queue.new
        before = SIGNALS.to_h { |name| [name, trap(name) { stop << name }] }
        yield(stop)
      ensure
        before&.each { |name, handler| trap(name, handler || "DEFAULT") }
      end

      def announce(address)
        @terminal.puts(address)
        @terminal.hint("Stop with Ctrl-C.")
        browse(address) unless @options[:no_open]
      end

      def browse(address)
        browser = BROWSERS.find { |name| Program.which(name) }
        return @terminal.hint("No browser found: open the URL yourself.") unless browser

        Process.detach(spawn(browser, address, in: File::NULL, out: File::NULL, err: File::NULL))
      end
    end
  end
end
