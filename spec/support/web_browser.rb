# frozen_string_literal: true

require "json"
require "uri"
require_relative "heap_dumps"

# Sends requests to Memprof::Web as a server would, without a socket, and through Rack::Lint.
module WebBrowser
  include HeapDumps

  ENTITIES = { "&amp;" => "&", "&lt;" => "<", "&gt;" => ">", "&quot;" => '"', "&#39;" => "'" }.freeze

  # The unescaped text of HTML. Newer Rubies have no CGI.
  def self.unescape(html)
    html.gsub(/&(?:amp|lt|gt|quot|#39);/, ENTITIES)
  end

  # A response.
  Answer = Struct.new(:status, :headers, :body) do
    def json = JSON.parse(body, symbolize_names: true)

    def location = headers["location"]

    # The paths that a page links to.
    def links
      body.scan(/<a\b[^>]*\bhref="([^"]*)"/).flatten.map { |target| WebBrowser.unescape(target) }
    end
  end

  # Allows everybody.
  class Open
    def answer(_request) = nil
  end

  # @return [Memprof::Web] with these dumps, and open to everybody
  def web_app(*dumps, gate: Open.new, opening: {}, **options)
    heaps = Memprof::Web::Heaps.new
    dumps.each { |dump| heaps.add(dump, **opening) }
    heaps.each { |entry| entry.heap(patience: 120) }
    Memprof::Web.new(heaps: heaps, gate: gate, **options)
  end

  def ask(app, target, method: "GET", script_name: "", form: nil, headers: {})
    path, query = target.split("?", 2)
    env = {
      "REQUEST_METHOD" => method, "SCRIPT_NAME" => script_name, "PATH_INFO" => path,
      "QUERY_STRING" => query.to_s, "HTTP_HOST" => "127.0.0.1:7000", "SERVER_NAME" => "127.0.0.1",
      "SERVER_PORT" => "7000", "SERVER_PROTOCOL" => "HTTP/1.1", "rack.url_scheme" => "http",
      "rack.input" => StringIO.new((form ? URI.encode_www_form(form) : "").b), "rack.errors" => StringIO.new,
      **rack_two
    }
    env["CONTENT_TYPE"] = "application/x-www-form-urlencoded" if form
    headers.each { |name, value| env["HTTP_#{name.upcase.tr("-", "_")}"] = value }
    status, headers, body = Rack::Lint.new(app).call(env)
    parts = []
    body.each { |part| parts << part }
    body.close if body.respond_to?(:close)
    Answer.new(status, headers, parts.join.force_encoding(Encoding::UTF_8))
  end

  private

  # Env keys that only Rack 2 requires.
  def rack_two
    {
      "rack.version" => [1, 3], "rack.multithread" => true, "rack.multiprocess" => false,
      "rack.run_once" => false
    }
  end
end
