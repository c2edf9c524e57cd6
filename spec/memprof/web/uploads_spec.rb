# frozen_string_literal: true

require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe Memprof::Web::Uploads do
  include WebBrowser

  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:library) { Memprof::Library.new(directory) }
  let(:limit) { 2 * 1024**3 }
  let(:key) { "k" * 32 }
  let(:hosts) { Memprof::Web::Security::Hosts.new }
  let(:app) do
    Memprof::Web.new(heaps: Memprof::Web::Heaps.new(library: library), gate: WebBrowser::Open.new,
      hosts: hosts, uploads: described_class.new(library, key, limit: limit))
  end
  let(:own) { { "Sec-Fetch-Site" => "same-origin" } }

  after { FileUtils.rm_rf(directory) }

  # An input that is read part by part, and counts the bytes.
  def input(bytes)
    StringIO.new(bytes).tap do |io|
      def io.read(length = nil, *rest)
        raise "all at once" if length.nil? || length > 1024 * 1024

        super
      end
    end
  end

  def upload(bytes = File.binread(cache_dump), query: "name=shop", given: key, length: bytes.bytesize,
    body: nil, host: "127.0.0.1:7000")
    env = Rack::MockRequest.env_for("/upload?#{query}", method: "POST", input: "")
    env.update("rack.input" => body || input(bytes), "HTTP_HOST" => host)
    env["CONTENT_LENGTH"] = length.to_s if length
    env["HTTP_AUTHORIZATION"] = "Bearer #{given}" if given
    status, _, parts = app.call(env)
    [status, JSON.parse(parts.each.to_a.join, symbolize_names: true)]
  end

  def files
    Dir.children(directory) - [".lock"]
  end

  it "takes a dump, and says where to look at it" do
    status, answer = upload(query: "name=my_leaky_app&pid=7&host=box")
    entry = library.first
    expect([status, answer]).to match([201, include(id: entry.number, name: "my_leaky_app",
      objects: be > 1000, url: "http://127.0.0.1:7000/heaps/#{entry.number}/")])
    expect(FileUtils.identical?(entry.path, cache_dump)).to be(true)
    app.heaps.fetch(entry.number).heap(patience: 30)
    expect(ask(app, "/heaps/#{entry.number}/").body).to include("<h1>my_leaky_app</h1>")
  end

  it "takes nothing from who has not the key" do
    ["", "k", "k" * 31, "k" * 33, "K" * 32, nil, "\xFF"].each do |given|
      unread = instance_double(StringIO)
      expect(upload("", given: given, length: 5, body: unread)).to match([403, { error: /wrong key/ }])
    end
    env = Rack::MockRequest.env_for("/upload?name=a&key=#{key}", method: "POST", input: "key=#{key}")
    expect(app.call(env.merge("HTTP_SEC_FETCH_SITE" => "same-origin")).first).to eq(403)
    expect(files).to be_empty
  end

  it "takes no longer to refuse a key that is nearly right" do
    expect(Memprof::Web::Secret).to receive(:same?).with("k" * 31 + "x", key).and_call_original
    upload(given: "k" * 31 + "x")
  end

  it "takes nothing that is no dump, and nothing that was cut" do
    expect(upload("no dump\n" * 1000)).to match([422, { error: /not a heap dump, so it was not stored/ }])
    expect(upload("")).to match([422, { error: /not a heap dump/ }])
    expect(upload(length: File.size(cache_dump) + 1)).to match([400, { error: /received \d+ of \d+ bytes/ }])
    broken = input(File.binread(cache_dump))
    allow(broken).to receive(:read).and_raise(Errno::ECONNRESET)
    expect(upload(body: broken)).to match([400, { error: /the upload is truncated/ }])
    random = Random.new(1)
    lines = Array.new(50_000) do |number|
      address = format("0x%x000", number + 1)
      %({"address":"#{address}", "type":"OBJECT", "ivars":0, "memsize":#{random.rand(1 << 30)}}\n)
    end
    dump = lines.join
    [dump, Zlib.gzip(dump)].each do |bytes|
      expect(upload(bytes).first).to eq(201)
      answer = upload(bytes.byteslice(0, bytes.bytesize / 2))
      expect(answer).to match([422, { error: "the dump is truncated, so it was not stored" }])
    end
    library.each { |entry| library.delete(entry.number) }
    expect(files).to be_empty
  end

  it "needs a name" do
    ["", "name=", "name=%20", "names=a"].each do |query|
      expect(upload(query: query)).to match([400, { error: /name is missing/ }]), query
    end
    expect(upload(query: "name=%FF")).to match([400, { error: /UTF-8/ }])
  end

  it "lets no name out of the directory, nor into a page" do
    hostile = ["../../../tmp/x", "/etc/passwd", "a/../../b", "..", ".key", "<script>alert(1)</script>",
      "a\0b"]
    hostile.each do |name|
      expect(upload(query: URI.encode_www_form(name: name, title: name)).first).to eq(201), name
    end
    expect(files.size).to eq(hostile.size * 3)
    expect(files).to all(match(/\A\d{13}(?:-[\w-]*\.memprof(?:\.memprof-index)?|\.about\.json)\z/))
    pages = ["/library", "/library?app=%3Cscript%3Ealert(1)%3C/script%3E",
      *library.map { |entry| "/library/#{entry.number}" }].map { |path| ask(app, path) }
    expect(pages.map(&:status).uniq).to eq([200])
    expect(pages.map(&:body).join).to include("&lt;script&gt;alert(1)")
    expect(pages.map(&:body).join).not_to include("<script>alert")
  end

  # What the dump looks like whose second line has a String of so many bytes.
  def packed(bytes)
    packed = StringIO.new("".b)
    gzip = Zlib::GzipWriter.new(packed, Zlib::BEST_SPEED)
    gzip.write(%({"address":"0x1000", "type":"OBJECT", "ivars":0, "memsize":40}\n))
    gzip.write(%({"address":"0x2000", "type":"STRING", "value":"))
    (bytes / 1024**2).times { gzip.write("a" * 1024**2) }
    gzip.write(%(", "memsize":#{bytes}}\n))
    gzip.close
    packed.string
  end

  it "takes what is compressed, and no more of it than there is memory for" do
    expect(upload(packed(1024**2))).to match([201, include(objects: 2)])
    library.each { |entry| library.delete(entry.number) }
    fault = /this dump is too large: the record in line 2 is larger than the limit of 80 MiB/
    expect(upload(packed(600 * 1024**2))).to match([413, { error: fault }])
    expect(files).to be_empty
  end

  context "with a limit" do
    let(:limit) { File.size(cache_dump) - 1 }

    it "refuses what says it is too large before it is read, and what is when it comes" do
      unread = instance_double(StringIO)
      expect(upload(body: unread)).to match([413, { error: /a dump may have/ }])
      expect(upload(length: nil)).to match([413, { error: /a dump may have/ }])
      expect(files).to be_empty
    end
  end

  it "says that the library is full" do
    upload
    full = Memprof::Library.new(directory, max_size: library.size + 10)
    uploads = described_class.new(full, key, limit: limit)
    allow(app.instance_variable_get(:@uploads)).to receive(:answer) { |request| uploads.answer(request) }
    expect(upload).to match([507, { error: /the library is full/ }])
    expect(library.count).to eq(1)
  end

  it "says that the disk is full" do
    with_file_system("size=200k") do |place|
      full = Memprof::Library.new(place)
      uploads = described_class.new(full, key, limit: limit)
      allow(app.instance_variable_get(:@uploads)).to receive(:answer) { |request| uploads.answer(request) }
      expect(upload).to match([500, { error: /No space left on device/ }])
      expect(Dir.children(place)).to eq([".lock"])
    end
  end

  it "keeps all that come at once under one name" do
    app.call(Rack::MockRequest.env_for("/"))
    answers = Array.new(5) { Thread.new { upload } }.map(&:value)
    expect(answers.map(&:first)).to eq([201] * 5)
    expect(answers.map { |_, answer| answer[:id] }.uniq.size).to eq(5)
    expect(library.map(&:name)).to eq(["shop"] * 5)
  end

  it "is asked under any name, as the key is enough" do
    expect(upload(host: "dumps.example").first).to eq(201)
    expect(ask(app, "/library", headers: { "Host" => "dumps.example" }).status).to eq(403)
  end

  it "is nothing to see, and is not there without a library" do
    expect(ask(app, "/upload").status).to eq(404)
    plain = web_app(cache_dump)
    expect(ask(plain, "/upload?name=a", method: "POST", headers: own).status).to eq(404)
    ["/library", "/library.json", "/library/1"].each do |path|
      expect(ask(plain, path).status).to eq(404), path
    end
  end

  describe "the library's pages" do
    let!(:first) { upload(query: "name=shop&title=before").last[:id] }
    let!(:second) { upload(query: "name=shop&title=after").last[:id] }
    let!(:third) { upload(query: "name=other").last[:id] }

    def post(path, form = {}, headers: own)
      ask(app, path, method: "POST", form: form, headers: headers)
    end

    it "list, sort and choose" do
      expect(ask(app, "/").location).to eq("/library")
      list = ask(app, "/library.json").json
      expect(list[:dumps].map { |row| row[:id] }).to eq([third, second, first])
      expect(list).to include(total: 3, size: library.size, max_size: nil,
        apps: [{ app: "other", dumps: 1 }, { app: "shop", dumps: 2 }])
      names = ask(app, "/library.json?sort=name&app=shop").json[:dumps].map { |row| row[:name] }
      expect(names).to eq(%w[after before])
      %w[added taken size objects name app host].each do |sort|
        expect(ask(app, "/library?sort=#{sort}").status).to eq(200), sort
      end
      expect(ask(app, "/library?sort=secret").status).to eq(400)
    end

    it "lead to a comparison, and to the heaps" do
      page = ask(app, "/library").body
      expect(page).to include(%(<form id="compare" method="get" action="/diff"), "/heaps/#{second}/")
      expect(page).to match(/name="a" value="#{second}" form="compare" checked/)
      expect(page).to match(/name="b" value="#{third}" form="compare" checked/)
      expect(ask(app, "/library/#{second}").links).to include("/diff?a=#{first}&b=#{second}")
    end

    it "rename and delete" do
      expect(post("/library/#{first}/rename", { name: "<i>", app: "x" }).location).to eq("/library/#{first}")
      expect(library.find(first)).to have_attributes(name: "<i>", app: "x")
      expect(ask(app, "/library/#{first}").body).to include("<h1>&lt;i&gt;</h1>")
      expect(post("/library/#{first}/rename", { name: " " }).status).to eq(400)
      app.heaps.fetch(first)
      expect(post("/library/#{first}/delete").location).to eq("/library")
      expect([library.count, ask(app, "/heaps/#{first}/").status]).to eq([2, 404])
      expect(post("/library/#{first}/delete").status).to eq(404)
    end

    it "change nothing for another site" do
      [{ "Sec-Fetch-Site" => "cross-site" }, { "Origin" => "http://evil.example" }, {}].each do |headers|
        expect(post("/library/#{first}/delete", headers: headers).status).to eq(403)
        expect(post("/library/#{first}/rename", { name: "x" }, headers: headers).status).to eq(403)
      end
      expect(library.find(first).name).to eq("before")
    end

    it "reach no file by what is not a number" do
      ["..%2f..%2fetc%2fpasswd", "%2e%2e", "0", "-1", "#{first}x", "9" * 400].each do |number|
        expect(ask(app, "/library/#{number}").status).to eq(404), number
        expect(post("/library/#{number}/delete").status).to eq(404), number
      end
    end
  end
end
