# frozen_string_literal: true

require "json"
require "net/http"
require "socket"
require "uri"
require "zlib"

module Memprof
  module Compat
    class Uploader
      # Uploads a dump, compressed, to a server that runs `memprof web --library`.
      class Upload
        OPEN = 10 # seconds for the server to accept the connection
        ANSWER = 900 # seconds for the server to read the dump
        CONTINUE = 2 # seconds to wait for an early refusal before the whole dump is sent
        # Magic numbers of compressed files: gzip, zstd, and memprof's binary format.
        COMPRESSED = ["\x1F\x8B".b, "\x28\xB5\x2F\xFD".b, "memprof\x89".b].freeze
        LOCAL = /\A(?:localhost|127\.[\d.]+|\[::1\])\z/
        TROUBLE = [SystemCallError, SocketError, IOError, Timeout::Error, Net::ProtocolError,
          Net::HTTPBadResponse].freeze
        private_constant :OPEN, :ANSWER, :CONTINUE, :COMPRESSED, :LOCAL, :TROUBLE

        # The server refused the dump.
        class Refused < StandardError; end

        # A file read as a stream, optionally gzipped; the block gets the number of bytes read.
        class Body
          PIECE = 262_144
          private_constant :PIECE

          def initialize(file, compress:, &progress)
            @file = file
            @progress = progress
            @deflate = Zlib::Deflate.new(Zlib::DEFAULT_COMPRESSION, Zlib::MAX_WBITS + 16) if compress
            @ready = "".b
          end

          def read(length, buffer = "".b)
            fill until @ready.bytesize >= length || @ended
            buffer.replace(@ready.slice!(0, length))
            buffer unless buffer.empty?
          end

          private

          def fill
            piece = @file.read(PIECE)
            @progress.call(@file.pos)
            @ended = piece.nil?
            @ready << (@deflate ? deflated(piece) : piece.to_s)
          end

          def deflated(piece) = piece ? @deflate.deflate(piece) : @deflate.finish
        end
        private_constant :Refused, :Body

        def self.address(url)
          uri = URI.parse(url)
          raise URI::InvalidURIError unless uri.is_a?(URI::HTTP) && !uri.host.to_s.empty?

          uri.path = "#{uri.path.delete_suffix("/").delete_suffix("/upload")}/upload"
          uri.fragment = uri.query = nil
          uri
        rescue URI::InvalidURIError
          raise Failure, "Invalid --url \"#{Printable.line(url)}\"; expected a server such as https://dumps.example"
        end

        # `place` is the path that the dump keeps if it can't be sent.
        def initialize(dump, place, terminal, options)
          @dump = dump
          @place = place
          @terminal = terminal
          @options = options
          @uri = Upload.address(options.fetch(:url))
        end

        def run
          warn_of_listeners
          how = " as gzip" unless compressed?
          @terminal.puts("Uploading #{Units.bytes(File.size(@dump))}#{how} to #{place}...")
          @terminal.puts("View it: #{page(send_dump)}")
        rescue Refused, *TROUBLE => e
          raise Failure, "Can't upload to #{place}: #{Printable.line(e.message)}. To try again, use " \
                         "--file #{@place}"
        ensure
          @terminal.progress(nil)
        end

        private

        # From the given address: behind a proxy, the server does not know its own.
        def page(number) = "#{place}#{@uri.path.delete_suffix("/upload")}/heaps/#{number}/"

        def place = "#{@uri.scheme}://#{@uri.host}:#{@uri.port}"

        def warn_of_listeners
          return if @uri.scheme == "https" || LOCAL.match?(@uri.host)

          @terminal.warn("sending the key and the dump to #{@uri.host} unencrypted; https would " \
                         "encrypt them")
        end

        def send_dump
          File.open(@dump, "rb") do |file|
            connect { |http| read(http.request(request(file))) }
          end
        end

        def connect(&block)
          Net::HTTP.start(@uri.hostname, @uri.port, use_ssl: @uri.scheme == "https", open_timeout: OPEN,
            read_timeout: ANSWER, continue_timeout: CONTINUE, max_retries: 0, &block)
        rescue StandardError => e
          # Not in the list above, as OpenSSL may not be loaded.
          raise e unless e.class.name == "OpenSSL::SSL::SSLError"

          raise IOError, e.message
        end

        def request(file)
          total = file.size
          query = { name: @options[:name], pid: @options[:pid], host: Socket.gethostname }.compact
          length = compressed? ? { "Content-Length" => total.to_s } : { "Transfer-Encoding" => "chunked" }
          request = Net::HTTP::Post.new("#{@uri.path}?#{URI.encode_www_form(query)}",
            "Authorization" => "Bearer #{@options[:key]}", "Content-Type" => "application/octet-stream",
            "User-Agent" => "memprof/#{VERSION}", **length)
          # Net::HTTP takes TLS's own records for the server's response, and would wait for all of it.
          request["Expect"] = "100-continue" unless @uri.scheme == "https"
          request.body_stream = Body.new(file, compress: !compressed?) { |done| show(done, total) }
          request
        end

        def compressed?
          return @compressed unless @compressed.nil?

          head = File.binread(@dump, 8).to_s
          @compressed = COMPRESSED.any? { |bytes| head.start_with?(bytes) }
        end

        def show(done, total)
          text = "#{Units.bytes(done)} of #{Units.bytes(total)} (#{Units.percent(done, total)})"
          @terminal.progress(done < total ? "uploading #{text}" : "uploaded; the server checks it")
        end

        def read(response)
          answer = parsed(response.body)
          raise Refused, reason(response, answer["error"]&.to_s) unless response.code == "201"

          id = answer["id"]
          id.is_a?(Integer) ? id : raise(Refused, "that server does not run `memprof web --library`")
        end

        def reason(response, said)
          case response.code
          when "403" then "#{said || "permission denied"} (--key)"
          when /\A3/ then "redirected to #{response["location"]}"
          when "404" then "no library there; uploads need `memprof web --library`"
          else said || "HTTP status #{response.code} #{response.message}"
          end
        end

        # Empty if the server isn't memprof's.
        def parsed(body)
          found = JSON.parse(body.to_s)
          found.is_a?(Hash) ? found : {}
        rescue JSON::ParserError
          {}
        end
      end
    end
  end
end
