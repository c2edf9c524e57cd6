# frozen_string_literal: true

require_relative "heap_command"

module Memprof
  module CLI
    # `memprof web`: dumps in a browser.
    class Web < Command
      autoload :Shelf, "#{__dir__}/web/shelf"

      SIGNALS = %w[INT TERM].freeze
      BROWSERS = %w[xdg-open open].freeze
      private_constant :SIGNALS, :BROWSERS

      SUMMARY = "shows dumps in a browser"
      USAGE = "[OPTIONS] FILE... | --library [DIR]"
      DETAILS = <<~TEXT
        Serves pages on this machine alone, until Ctrl-C. The address that is printed
        has a token that opens it once. With --token the token is yours: it opens every
        time, and scripts send it as `Authorization: Bearer TOKEN`. Each page is JSON
        with .json at the end of its path.

        FILE may also be traced requests (as for memprof trace), a report as JSON
        (memprof run --format json) or what memprof track printed.

        With --library it shows the dumps that are kept in a directory (without DIR in
        MEMPROF_LIBRARY, or ~/.local/share/memprof), and takes more of them from
        `memprof --pid PID --name NAME --key KEY --url URL`, which may run elsewhere.

        Examples:
          memprof web heap.memprof
          memprof web --no-open --port 7000 before.memprof after.memprof
          memprof web --library
          memprof web --library /srv/dumps --bind 0.0.0.0 --host dumps.example
      TEXT

      def call(arguments)
        check_library(arguments)
        arguments.each { |file| check_readable(file) }
        load_library
        require_relative "../web"
        require_relative "../web/server"
        serve(arguments)
      rescue Memprof::Error => e
        raise UsageError, e.message
      end

      private

      def check_library(files)
        return if @options[:library]

        option = Shelf::OPTIONS.find { |name| @options[name] }
        raise UsageError, "--#{option.to_s.tr("_", "-")} is of use with --library only" if option
        raise UsageError, "FILE is missing; see `memprof help web`" if files.empty?
      end

      # Options may also follow the files.
      def arrange(parser, arguments)
        parser.permute(arguments)
      end

      def define_options(parser)
        text(parser, "--bind ADDRESS", "of the interface (default: 127.0.0.1)", :bind)
        parser.on("--port N", Integer, "(default: one that is free)") do |port|
          raise OptionParser::InvalidArgument, "must be 0 to 65535" unless port.between?(0, 65_535)

          @options[:port] = port
        end
        parser.on("--token TOKEN", "one of your own, of 8 characters or more") do |token|
          raise OptionParser::InvalidArgument, "must be 8 characters or more" if token.length < 8

          @options[:token] = token
        end
        parser.on("--host NAME", "that it answers to besides localhost") { |name| @options[:host] = name }
        Shelf.define_options(parser, @options)
        parser.on("--max-open N", Integer, "dumps that are open at once, 3 or more", "(default: 8)") do |most|
          raise OptionParser::InvalidArgument, "must be 3 or more" if most < 3

          @options[:max_open] = most
        end
        flag(parser, "--no-open", "do not start a browser", :no_open)
        flag(parser, "--no-index", "do not keep what was read beside FILE", :no_index)
        flag(parser, "--ignore-stack-roots", "what only a stack may hold counts as", "garbage",
          :ignore_stack_roots)
      end

      def check_readable(path)
        problem =
          if path == "-" then "it must be a file"
          elsif !File.exist?(path) then "no such file"
          elsif File.directory?(path) then "it is a directory"
          elsif !File.readable?(path) then "not allowed to"
          end
        raise UsageError, "cannot read #{path}: #{problem}" if problem
      end

      def serve(files)
        gate = Memprof::Web::Gate::Token.new(@options[:token])
        app = application(files, gate)
        bind = @options.fetch(:bind, "127.0.0.1")
        server = Memprof::Web::Server.new(app, bind: bind, port: @options.fetch(:port, 0))
        until_stopped do |stop|
          server.start
          announce("#{server.url}?token=#{URI.encode_www_form_component(gate.token)}")
          @terminal.hint(@shelf.hint(server.url)) if @shelf
          stop.pop
          server.stop
        end
        app.heaps.close_all
        0
      end

      def application(files, gate)
        Memprof::Web::Router.standard # before the thread that opens heaps needs a page
        @shelf = Shelf.new(@options) if @options[:library]
        heaps = Memprof::Web::Heaps.new(library: @shelf&.library, **@options.slice(:max_open), **reading)
        files.each { |file| add(heaps, file) }
        # While the browser starts there is time for the first page.
        heaps.first&.prepare { |entry| Memprof::Web::Ahead.new(heaps).look(entry) }
        hosts = Memprof::Web::Security::Hosts.new(@options.values_at(:bind, :host).compact)
        Memprof::Web.new(heaps: heaps, gate: gate, hosts: hosts, uploads: @shelf&.uploads)
      end

      def reading
        { index: !@options[:no_index], ignore_stack_roots: @options.fetch(:ignore_stack_roots, false) }
      end

      def add(heaps, file)
        kind = Memprof::Web::Records::Kind.of(file)
        return heaps.records.add(file, kind) unless kind == :heap

        heaps.add(file, **reading)
      end

      # Waits for a signal without handling it in the trap, where locks can't be taken.
      def until_stopped
        stop = Queue.new
        before = SIGNALS.to_h { |name| [name, trap(name) { stop << name }] }
        yield(stop)
      ensure
        before&.each { |name, handler| trap(name, handler || "DEFAULT") }
      end

      def announce(address)
        @terminal.puts(address)
        @terminal.hint("Ctrl-C stops it.")
        browse(address) unless @options[:no_open]
      end

      def browse(address)
        browser = BROWSERS.find { |name| on_path?(name) }
        return @terminal.hint("No browser was found: open the address yourself.") unless browser

        Process.detach(spawn(browser, address, in: File::NULL, out: File::NULL, err: File::NULL))
      end

      def on_path?(name)
        ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).any? do |directory|
          File.executable?(File.join(directory, name))
        end
      end
    end
  end
end
