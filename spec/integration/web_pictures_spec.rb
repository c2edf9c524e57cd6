# frozen_string_literal: true

require "net/http"
require "open3"
require "tmpdir"
require "timeout"

# Pictures and comparisons, as a browser gets them: dumps, requests and a report in one `memprof web`.
RSpec.describe "memprof web, pictures" do
  include HeapDumps

  let(:token) { "long enough" }

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def serve(*files)
    program = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
    Open3.popen3(*program, "web", "--no-open", "--token", token, *files) do |_, stdout, stderr, child|
      address = Timeout.timeout(120) { stdout.gets }
      raise stderr.read unless address

      @uri = URI(address.chomp)
      yield
    ensure
      Process.kill(:KILL, child.pid) if child.alive?
    end
  end

  def get(path)
    Timeout.timeout(120) do
      loop do
        answer = Net::HTTP.start(@uri.host, @uri.port) do |http|
          http.get(path, "authorization" => "Bearer #{token}")
        end
        return answer unless answer.code == "202"

        sleep(0.05)
      end
    end
  end

  # The page, with scripts and styles of this answer only, and its JSON twin.
  def look_at(path)
    page = get(path)
    expect(page.code).to eq("200"), "#{path}: #{page.body}"
    nonce = page["content-security-policy"][/'nonce-(.*?)'/, 1]
    marks = page.body.scan(/<(?:script|link rel="stylesheet")[^>]*>/)
    expect(marks).to all(include(%(nonce="#{nonce}")))
    expect(page.body).not_to match(/<style|\sstyle=|\son\w+=/)
    expect(JSON.parse(get(path.sub(/(\?|\z)/, '.json\1')).body)).to be_a(Hash)
    page.body
  end

  # What the page is made of besides itself.
  def assets(page) = page.scan(%r{(?:src|href)="(/assets/[^"]*)"}).flatten

  # The pages of this kind that one links to.
  def links(page, pattern)
    targets = page.scan(/<a\b[^>]*\bhref="([^"]*)"/).flatten.map { |target| CGI.unescapeHTML(target) }
    targets.grep(pattern).map { |target| target[/\A[^#]*/] }.uniq
  end

  def write_files
    tracers = { "objects" => { "created" => 3 } }
    record = { "start" => 1_700_000_000_000_000, "tracers" => tracers, "time" => 0.1 }
    File.write("requests.json", "#{JSON.generate(record)}\n" * 3)
    result = run_ruby("require 'memprof'; puts Memprof.report(stack: 8) { $x = 'a'.dup }.to_json")
    File.write("report.json", result.stdout)
  end

  it "shows what dumps and files have in common, and each picture that is linked" do
    write_files
    serve(cache_dump, cache_dump(2), cache_dump(3), "requests.json", "report.json") do
      diff = look_at("/diff?a=1&b=2&c=3")
      pages = links(diff, %r{\A/diff[?/]}).first(16).map { |path| [path, look_at(path)] }
      expect(pages.map(&:first).grep(%r{/interface})).not_to be_empty
      flame = look_at("/heaps/3/flame")
      object = flame[%r{/objects/(0x\h+)}, 1]
      graph = look_at("/heaps/3/graph/#{object}")
      links(graph, /expand=/).first(3).each { |path| look_at(path) }
      expect(get("/heaps/3/graph/#{object}?format=gml").body).to start_with("Creator")
      files = ["/traces/1", "/traces/1/requests/2", "/tracked/1", "/tracked/1/flame"]
      files = files.map { |path| look_at(path) }
      loaded = [diff, flame, graph, *files].flat_map { |page| assets(page) }.uniq
      expect(loaded.map { |path| get(path).code }.uniq).to eq(["200"])
      expect([diff, flame, graph, *files].map(&:bytesize).max + loaded.sum { |path| get(path).body.bytesize })
        .to be < 100 * 1024
    end
  end

  it "shows a file of requests without any dump" do
    write_files
    serve("requests.json") do
      expect(get("/")["location"]).to end_with("/traces/1")
      expect(look_at("/traces/1")).to include("3 requests")
      expect(get("/diff").code).to eq("200")
    end
  end
end
