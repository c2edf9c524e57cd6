# frozen_string_literal: true

require "webrick"

module Memprof
  class Web
    class Server
      # WEBrick, without the handler that Rack 2 has for it and Rack 3 has not.
      #
      # @api private
      class Webrick
        # @param app [#call]
        def initialize(app)
          @app = app
        end

        # @param bind [String]
        # @param port [Integer]
        # @return [Integer] the port
        def start(bind, port)
          @server = WEBrick::HTTPServer.new(BindAddress: bind, Port: port, AccessLog: [],
            Logger: WEBrick::Log.new($stderr, WEBrick::Log::ERROR), DoNotReverseLookup: true)
          @server.mount("/", Servlet, @app)
          @thread = Thread.new { @server.start }
          @server.listeners.first.addr[1]
        end

        # @return [void]
        def stop
          @server.shutdown
          @thread.join
        end

        # Any method goes to the application.
        class Servlet < WEBrick::HTTPServlet::AbstractServlet
          # @param server [WEBrick::HTTPServer]
          # @param app [#call]
          def initialize(server, app)
            super(server)
            @app = app
          end

          # @param request [WEBrick::HTTPRequest]
          # @param response [WEBrick::HTTPResponse]
          # @return [void]
          def service(request, response)
            status, headers, body = @app.call(environment(request))
            response.status = status
            headers.each { |name, value| set(response, name, value) }
            response.body = +""
            body.each { |part| response.body << part }
          ensure
            body.close if body.respond_to?(:close)
          end

          private

          def set(response, name, value)
            cookie = name == "set-cookie"
            cookie ? response.cookies << WEBrick::Cookie.parse_set_cookie(value) : response[name] = value
          end

          # The path is taken as it came: WEBrick's own is decoded, which can be done only once.
          def environment(request)
            request.meta_vars.merge(
              "SCRIPT_NAME" => "", "PATH_INFO" => request.unparsed_uri.split("?", 2).first,
              "QUERY_STRING" => request.query_string.to_s, "rack.url_scheme" => "http",
              "rack.input" => Input.new(request), "rack.errors" => $stderr
            )
          end
        end

        # The body of a request, as it comes: what is refused is not read, and what is large is never whole in
        # memory.
        class Input
          # @param request [WEBrick::HTTPRequest]
          def initialize(request)
            @parts = Enumerator.new do |parts|
              request.continue # some clients wait for that word
              request.body { |part| parts << part }
            end
            @rest = String.new
          end

          # @param length [Integer, nil] bytes at most; nil for all
          # @param buffer [String, nil] is given what was read
          # @return [String, nil] nil at the end if a length was given
          def read(length = nil, buffer = nil)
            fill(length)
            taken = @rest.slice!(0, length || @rest.bytesize)
            taken = nil if taken.empty? && length&.positive?
            buffer ? buffer.replace(taken.to_s) && taken : taken
          end

          # @return [String, nil] a line
          def gets
            fill(nil)
            line = @rest.slice!(/\A.*(?:\n|\z)/n)
            line unless line.nil? || line.empty?
          end

          # @yieldparam part [String]
          # @return [void]
          def each
            while (line = gets)
              yield(line)
            end
          end

          private

          # Each part is given back at once: the collector would wait for a hundred megabytes of them.
          def fill(length)
            while length.nil? || @rest.bytesize < length
              part = @parts.next
              @rest << part
              part.clear
            end
          rescue StopIteration
            nil # that was all
          end
        end
      end
    end
  end
end
