# frozen_string_literal: true

require "uri"

class Chromium
  # What happens in a tab: pages that were loaded, what they asked for, and whatever went wrong meanwhile.
  class Watch
    # What needs no request.
    LOCAL = /\A(?:data|blob|about|file):/
    HOST = "127.0.0.1"
    private_constant :LOCAL, :HOST

    # @return [Integer] pages that were loaded
    attr_reader :loads
    # @return [String, nil] of the page that is there
    attr_reader :address
    # @return [Integer, nil] its status
    attr_reader :status
    # @return [Array<String>] what went wrong: errors of scripts, of the console, of policies, answers of 400
    #   and above, requests to others
    attr_reader :problems
    # @return [Array<String>] addresses that were asked for
    attr_reader :requests
    # @return [Boolean] whether the page is whole
    attr_reader :loaded

    def initialize
      @loads = 0
      @problems = []
      @requests = []
      @urls = {}
    end

    # Takes what went wrong until now.
    #
    # @return [Array<String>]
    def forget = @problems.shift(@problems.size)

    # @param method [String] of an event
    # @param params [Hash]
    def take(method, params)
      case method
      when "Page.loadEventFired" then @loaded = true
      when "Network.requestWillBeSent" then request(params)
      when "Network.responseReceived" then response(params)
      when "Network.loadingFailed" then failure(params)
      when "Runtime.exceptionThrown" then exception(params["exceptionDetails"])
      when "Runtime.consoleAPICalled" then console(params)
      when "Log.entryAdded" then entry(params["entry"])
      end
    end

    private

    def request(params)
      url = params["request"]["url"]
      @requests << url
      @urls[params["requestId"]] = url
      @problems << "#{params["documentURL"]} asks #{url}" unless url.match?(LOCAL) || own?(url, params)
    end

    # A page may be of any server of this machine, what belongs to it of its own alone.
    def own?(url, params)
      return URI(url[/\A[^?#]*/]).host == HOST if params["type"] == "Document"

      origin(url) == origin(params["documentURL"])
    end

    def response(params)
      url, status = params["response"].values_at("url", "status")
      document(url, status) if params["type"] == "Document"
      @problems << "#{url}: #{status}" if status >= 400
    end

    # The load event of this one is still to come.
    def document(url, status)
      @loads += 1
      @address = url
      @status = status
      @loaded = false
    end

    def failure(params)
      # What a new page calls off is no failure.
      @problems << "#{@urls[params["requestId"]]}: #{params["errorText"]}" unless params["canceled"]
    end

    def exception(details)
      @problems << "#{address}: #{details.dig("exception", "description") || details["text"]}"
    end

    def console(params)
      return unless ["error", "warning", "assert"].include?(params["type"])

      said = params["args"].map { |value| value["value"] || value["description"] }
      @problems << "#{address}: #{said.join(" ")}"
    end

    def entry(entry)
      return unless ["error", "warning"].include?(entry["level"])

      @problems << "#{entry["url"] || address}: #{entry["text"]}"
    end

    def origin(url)
      uri = URI(url[/\A[^?#]*/])
      [uri.scheme, uri.host, uri.port]
    end
  end
end
