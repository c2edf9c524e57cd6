# frozen_string_literal: true

require_relative "errors"
require_relative "printable"
require_relative "web/prefetch"
require_relative "web/assets"
require_relative "web/gate"
require_relative "web/heaps"
require_relative "web/live"
require_relative "web/page"
require_relative "web/request"
require_relative "web/responder"
require_relative "web/response"
require_relative "web/router"
require_relative "web/security"
require_relative "web/tracing"
require_relative "web/uploads"

module Memprof
  # Heaps in a browser, as a Rack application: for `memprof web`, and to mount in an application. See
  # docs/web.md.
  #
  # Each page is also available as JSON, at the same path plus `.json`. Sizes in JSON are in bytes.
  #
  # Mounted in an application, it inspects the process that it runs in: it starts and stops tracking, takes
  # dumps, and traces requests ({Tracing}). Every request gets 404 until access is granted by {permit} or by a
  # token.
  #
  # @example In config/routes.rb of a Rails application
  #   Memprof::Web.permit { |env| env["warden"]&.user&.admin? }
  #   mount Memprof::Web => "/memprof"
  # @example In config.ru, for who opens /memprof/?token=... once
  #   Memprof::Web.token = ENV.fetch("SECRET_OF_OUR_OWN")
  #   map("/memprof") { run Memprof::Web }
  class Web
    LOCK = Mutex.new
    private_constant :LOCK

    class << self
      # Answers a request with the application that all mounts share.
      #
      # @param env [Hash] of Rack
      # @return [Array] status, headers, body
      def call(env) = mounted.call(env)

      # Grants access where this is mounted. Without it, and without a token, access is denied. The heap
      # contains everything the process knows: passwords, keys, user input.
      #
      # @yieldparam env [Hash] of Rack: the session of Rails is `env["rack.session"]`
      # @yieldreturn [Object] whether the request is allowed. If the block raises, it is denied
      # @return [void]
      # @raise [ArgumentError] without a block
      # @example
      #   Memprof::Web.permit { |env| env["REMOTE_ADDR"] == "127.0.0.1" }
      def permit(&block)
        raise ArgumentError, "block required" unless block

        gate.permit(&block)
        nil
      end

      # Sets a token that grants access, too: `/memprof/?token=TOKEN` in a browser, which stores it in a
      # cookie, and `Authorization: Bearer TOKEN` in a script. The default is the environment variable
      # MEMPROF_WEB_TOKEN, if set.
      #
      # @param token [String, nil] 8 characters or more; nil for none
      # @return [String, nil] token
      # @raise [ArgumentError] if it is too short
      # @example
      #   Memprof::Web.token = "correct horse battery staple"
      def token=(token)
        gate.token = token
      end

      # Sets how many heaps may be open at once; 8 by default. Each takes about 80 bytes of this process's
      # memory per object. Beyond that number, the least recently used one is closed, and reopened on access.
      #
      # @param number [Integer] heaps, 3 or more, as a comparison needs three
      # @return [Integer] number
      # @raise [ArgumentError] if it is less than 3
      # @example
      #   Memprof::Web.max_open = 4
      def max_open=(number)
        mounted.heaps.max_open = number
      end

      # @api private
      # The application that all mounts share.
      def mounted
        @mounted || LOCK.synchronize { @mounted ||= new(heaps: Heaps.new(live: Live.new), gate: gate) }
      end

      private

      attr_reader :gate
    end

    @gate = Gate::Mounted.new

    # @api private
    attr_reader :heaps

    # @api private
    def initialize(heaps: Heaps.new, gate: Gate::Closed.new, hosts: nil, uploads: nil,
      router: Router.standard)
      @heaps = heaps
      @gate = gate
      @security = Security.new(hosts)
      @uploads = uploads
      @router = router
    end

    # @param env [Hash] of Rack
    # @return [Array] status, headers, body
    def call(env)
      env[Live::RequestRecorder::OWN] = true
      return serve(env) unless @heaps.live

      # Don't track what the pages allocate: it isn't the application's.
      Native.quiet { serve(env) }
    end

    private

    def serve(env)
      request = Request.new(env)
      response = answer(request)
      Security.headers(request).each { |name, value| response.headers[name] ||= value }
      response.to_rack(head: request.head?)
    end

    # Nothing is looked up, not even whether a path exists, for requests that the gate denies. Uploads have a
    # key of their own, which no page of another site knows.
    def answer(request)
      @uploads&.answer(request) || @security.refusal(request) || @gate.answer(request) ||
        @security.cross_site_refusal(request) || page(request)
    rescue BadRequest => e
      Response.text(400, "#{e.message}\n")
    rescue StandardError, ScriptError => e
      failed(request, e)
    end

    # An internal error must not reach the server: its report of an exception may include the environment, and
    # with it cookies and keys.
    def failed(request, error)
      place = error.backtrace&.first
      words = error.message[/\A.*?(?= for |\n|\z)/].to_s[0, 200]
      message = "#{error.class}: #{Printable.line(words)} (#{place})"
      request.env["rack.errors"]&.write("memprof: #{request.path}: #{message}\n")
      Response.text(500, "internal error in memprof (please report it):\n#{message}\n")
    end

    def page(request) = Assets.response(request) || Responder.new(@router, @heaps, request).response
  end
end
