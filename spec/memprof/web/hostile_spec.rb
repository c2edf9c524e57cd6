# frozen_string_literal: true

require "csv"
require "memprof/web"
require "rack"
require "rexml/document"

# A heap may contain anything, including an attack on the viewer.
RSpec.describe "A hostile heap in Memprof::Web" do
  include WebBrowser

  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:app) { web_app(dump) }
  let(:dump) do
    path = File.join(directory, "<b>heap.memprof")
    run_ruby(<<~'RUBY', args: [path]).then { |result| raise result.stderr unless result.success? }
      require "memprof"
      Memprof.start
      script = "<script>alert(1)</script>"
      $texts = [script, "\" onmouseover=alert(1) x=\"", "'><img src=x onerror=alert(1)>", "\e[31mred\e]0;title\a",
        "\xFF\xFE not text", "\u202Edesrever", "</pre></title><script>", "a\0b", "x" * 50_000_000].map(&:dup)
      $more = ["<script>a(1)</script>", *$texts.first(8)].flat_map { |text| Array.new(50) { text.dup } }
      Object.const_set(:Evil, Class.new { def self.name = "<script>" })
      $objects = Array.new(5) { Evil.new.tap { |evil| evil.instance_variable_set(:@evil, script) } }
      $hash = $texts.first(8).to_h { |text| [text, script] }
      eval("$made = Array.new(9) { Object.new }", binding, "<script>alert(2)</script>.rb", 3)
      eval("$read = Array.new(9) { Object.new }", binding, "/etc/passwd", 1)
      Thread.new { Thread.current.name = script; sleep }.then { Thread.pass until _1.status == "sleep" }
      $proc = eval("proc { script }", binding, "</a><script>", 7)
      Memprof.dump_all(ARGV.first)
    RUBY
    path
  end

  after { FileUtils.rm_rf(directory) }

  def safe(target)
    answer = ask(app, target)
    expect(answer.status).to be < 500, "#{target}: #{answer.body[0, 500]}"
    return answer unless answer.headers["content-type"]&.start_with?("text/html")

    body = answer.body
    expect(body).to be_valid_encoding, target
    # The page's own script has a nonce; no other element of a heap's text got in.
    expect(body.scan(/<script\b[^>]*>/)).to all(match(/ nonce="[\w-]+"/)), target
    expect(body).not_to match(/<img|<b>|<[^>]*\son\w+=/), target
    expect(body).not_to match(/[\x00-\x08\x0b\x0c\x0e-\x1f\u202e]/), target
    expect(body.bytesize).to be < 500_000, target
    answer
  end

  it "shows everything and runs nothing" do
    targets = %w[/heaps /heaps/1/ /heaps/1/strings /heaps/1/threads /heaps/1/procs /heaps/1/leaks
      /heaps/1/tree /heaps/1/collections /heaps/1/namespaces /heaps/1/groups?by=line /heaps/1/groups?by=file
      /heaps/1/groups?by=class&then=line /heaps/1/objects?sort=size /heaps/1/search?q=%3Cscript%3E]
    seen = targets.flat_map { |target| [target, *safe(target).links.grep(%r{/objects/0x}).first(30)] }.uniq
    seen.drop(targets.size).each { |target| safe(target) }
    expect(safe("/heaps/1/strings").body).to include("&lt;script&gt;a(1)&lt;/script&gt;")
  end

  it "exports nothing that runs" do
    pictures = %w[/heaps/1/flame.svg /heaps/1.svg].map { |target| REXML::Document.new(safe(target).body) }
    names = pictures.flat_map { |svg| REXML::XPath.match(svg, "//*").map(&:name) }
    expect(names.uniq - %w[svg style g title rect text]).to eq([])
    names = safe("/heaps/1/strings.csv").body
    expect(names).to include("<script>a(1)</script>")
    expect(CSV.parse(names, headers: true).size).to be > 5
    tables = %w[strings threads groups?by=line objects?sort=size procs].map do |page|
      safe("/heaps/1/#{page.sub(/(?=\?|\z)/, ".md")}").body
    end
    expect(tables.join.gsub(/^```.*?^```/m, "").gsub(/(`+).*?\1/, "")).not_to match(/[<>]/)
  end

  it "takes hostile words in addresses" do
    evil = ["<script>alert(1)</script>", "\"'><img src=x>", "\u202e", "a\nb", "%3Cscript%3E", "' or 1",
      "x" * 5000]
    evil.each do |words|
      %w[where q by sort page then of under threshold].each do |name|
        query = URI.encode_www_form(name => words)
        %w[objects groups search tree namespaces leaks].each { |page| safe("/heaps/1/#{page}?#{query}") }
      end
      safe("/heaps/1/classes/#{ERB::Util.url_encode(words)}")
      safe("/heaps/1/objects/#{ERB::Util.url_encode(words)}")
      safe("/#{ERB::Util.url_encode(words)}")
    end
  end

  it "reads no file that is not a program's source" do
    object = app.heaps.first.heap.where('file = "/etc/passwd" and class = Object').first
    expect(object.line).to eq(1)
    answer = safe("/heaps/1/objects/#{object.address}")
    expect(answer.body).not_to include("root:")
    expect(ask(app, "/heaps/1/objects/#{object.address}.json").json[:source]).to be_nil
  end

  it "does not put a text of 50 MB on a page" do
    string = app.heaps.first.heap.where("type = string and length > 1MiB").first
    expect(safe("/heaps/1/objects/#{string.address}").body.bytesize).to be < 50_000
    expect(ask(app, "/heaps/1/objects/#{string.address}.json").body.bytesize).to be < 50_000
  end
end
