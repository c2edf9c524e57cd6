# frozen_string_literal: true

require "io/wait"
require "json"

class Chromium
  # The DevTools protocol: JSON with a zero byte behind each message. Answers come to who asked, and what
  # happens meanwhile to who listens to that session.
  class Connection
    PATIENCE = 120 # seconds: a machine may be busy
    private_constant :PATIENCE

    def initialize(requests, answers)
      @requests = requests
      @answers = answers
      @number = 0
      @listeners = Hash.new(->(_method, _params) {})
    end

    # @param session [String] of a tab
    # @yieldparam method [String]
    # @yieldparam params [Hash]
    def listen(session, &listener)
      @listeners[session] = listener
    end

    # @param method [String] as "Page.navigate"
    # @param session [String, nil] of a tab; nil for the browser
    # @param params [Hash]
    # @return [Hash] its result
    # @raise [Error] if it is refused, or not answered in time
    def ask(method, session: nil, **params)
      number = @number += 1
      message = { id: number, method: method, params: params, sessionId: session }.compact
      @requests.write("#{JSON.generate(message)}\0")
      until_found("an answer to #{method}") do |answer|
        next unless answer["id"] == number
        raise Error, "#{method}: #{answer["error"]["message"]}" if answer["error"]

        answer["result"]
      end
    rescue Errno::EPIPE
      raise Error, "chromium has ended"
    end

    # Takes what has come, and waits for more until the block gives something.
    #
    # @param what [String] is waited for
    # @return [Object]
    # @raise [Error] if it does not come in time
    def until_found(what, seconds: PATIENCE)
      limit = now + seconds
      loop do
        found = yield(read(limit - now) || raise(Error, "no #{what} within #{seconds} s"))
        return found if found
      end
    end

    # Takes what has come until the time is over.
    def attend(seconds)
      limit = now + seconds
      nil while read([limit - now, 0].max)
    end

    def close
      [@requests, @answers].each(&:close)
    end

    private

    # The next message; nil if none comes.
    def read(seconds)
      return unless @answers.wait_readable([seconds, 0].max)

      text = @answers.gets("\0") or raise Error, "chromium has ended"
      message = JSON.parse(text.chomp("\0"))
      @listeners[message["sessionId"]].call(message["method"], message["params"]) if message["method"]
      message
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
