# frozen_string_literal: true

require "io/wait"
require "time"

module Memprof
  class Web
    class Server
      # Writes the response to a request.
      class Reply
        REASONS = {
          200 => "OK", 201 => "Created", 202 => "Accepted", 204 => "No Content", 303 => "See Other",
          304 => "Not Modified", 400 => "Bad Request", 403 => "Forbidden", 404 => "Not Found",
          405 => "Method Not Allowed", 409 => "Conflict", 413 => "Content Too Large",
          422 => "Unprocessable Content", 431 => "Request Header Fields Too Large",
          500 => "Internal Server Error", 501 => "Not Implemented", 503 => "Service Unavailable",
          507 => "Insufficient Storage"
        }.freeze
        EMPTY = [204, 304].freeze
        private_constant :REASONS, :EMPTY

        def initialize(socket, head, patience)
          @socket = socket
          @head = head
          @patience = patience
        end

        def write(status, headers, parts)
          without = EMPTY.include?(status) || @head&.head?
          send(start(status, headers, without ? nil : parts.sum(&:bytesize)))
          parts.each { |part| send(part) } unless without
        end

        private

        def start(status, headers, length)
          lines = ["HTTP/1.1 #{status} #{REASONS[status]}", "date: #{Time.now.httpdate}", "connection: close"]
          lines << "content-length: #{length}" if length
          headers.each { |name, value| lines << "#{name}: #{value}" unless name == "connection" }
          "#{lines.map { |line| line.delete("\r\n") }.join("\r\n")}\r\n\r\n"
        end

        def send(text)
          rest = text.b
          until rest.empty?
            written = @socket.write_nonblock(rest, exception: false)
            if written == :wait_writable
              @socket.wait_writable(@patience) || raise(IOError, "the client does not read")
            else
              rest = rest.byteslice(written..)
            end
          end
        end
      end
    end
  end
end
