# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "tmpdir"

RSpec.describe "Memprof::Tracer in Rails with ActiveRecord, in puma" do
  app = File.expand_path("../fixtures/apps/library/config.ru", __dir__)

  before(:all) do
    %w[puma logger active_record action_controller sqlite3].each { |library| need(client: library) }
    @directory = Dir.mktmpdir("memprof-spec-")
    database = "sqlite3:#{@directory}/library.sqlite3?pool=5&timeout=9000"
    env = { "MEMPROF_DIR" => @directory, "DATABASE_URL" => database }
    with_puma(app, "--threads", "5:5", env: env) { |port| @answers = ask(port) }
    @requests = Dir["#{@directory}/memprof_tracer-*.json"].flat_map { |file| File.readlines(file) }
      .map { |line| JSON.parse(line) }
  end

  after(:all) { FileUtils.rm_rf(@directory) if @directory }

  # Five readers at a time, each for another number of authors; then one at a time.
  def ask(port)
    reader = ->(count) { Array.new(5) { Net::HTTP.get_response("127.0.0.1", "/authors/#{count}", port) } }
    read = [1, 5, 10, 20, 40].map { |count| Thread.new { reader.call(count) } }.flat_map(&:value)
    written = Net::HTTP.post(URI("http://127.0.0.1:#{port}/books/3"), "")
    found = %w[1 0 0?details=1].map { |id| Net::HTTP.get_response("127.0.0.1", "/found/#{id}", port) }
    shelf = Net::HTTP.get_response("127.0.0.1", "/shelf/7", port)
    { read: read, written: written, found: found, shelf: shelf }
  end

  def requests(path)
    @requests.select { |request| request["request"]["PATH_INFO"].start_with?(path) }
  end

  def kinds(request)
    request["tracers"]["sqlite"]["types"].transform_values { |kind| kind["queries"] }
  end

  it "has a line for each request, with what it asked the database, and nothing of the others" do
    expect(@answers[:read].map(&:code).uniq).to eq(["200"])
    asked = requests("/authors").group_by { |request| request["request"]["PATH_INFO"][/\d+/].to_i }
    expect(asked.transform_values(&:size)).to eq(1 => 5, 5 => 5, 10 => 5, 20 => 5, 40 => 5)
    asked.each do |count, lines|
      expect(lines.map { |line| kinds(line) }.uniq).to eq(["select" => count + 1])
    end
  end

  it "counts as many statements as ActiveRecord" do
    expect(@answers[:read].map { |answer| answer.body.to_i }.tally)
      .to eq(requests("/authors").map { |request| request["tracers"]["sqlite"]["queries"] }.tally)
    expect(kinds(requests("/books").first)).to eq("insert" => 3, "unknown" => 2) # begin and commit
    expect(@answers[:written].body).to eq("5")
  end

  it "shows statements without their values, the lines that send them, and which of them are repeated" do
    statements = requests("/shelf").first["tracers"]["sql"]["statements"]
    expect(statements.map { |one| one.values_at("queries", "n_plus_one") }).to include([7, true], [1, nil])
    expect(statements.first).to include("sql" => /\ASELECT "authors"\.\* FROM "authors" WHERE .* LIMIT \?\z/,
      "caller" => %r{spec/fixtures/apps/library/app/views/shelves/_book\.html\.erb:1\z})
    expect(requests("/books").to_s).not_to match(/Book \d/)
  end

  it "has the time of templates, each without that of the others" do
    views = requests("/shelf").first["tracers"]["views"]
    calls = views["templates"].to_h { |path, one| [File.basename(path), one["calls"]] }
    expect(calls).to include("index.html.erb" => 1, "_book.html.erb" => 1, "_total.html.erb" => 1)
    expect(views["templates"].sum { |_, one| one["time"] }).to be_within(1e-6).of(views["time"])
    expect(requests("/shelf").first["time"]).to be > views["time"]
  end

  it "has the id that Rails gives the request" do
    ids = @requests.map { |request| request["request"]["request_id"] }
    expect(ids).to all(match(/\A[\w-]{36}\z/)).and eq(ids.uniq)
    expect(ids).to include(@answers[:shelf]["x-request-id"])
  end

  it "says which action it was, and how it ended" do
    expect(requests("/authors").map { |request| request["rails"] }.uniq)
      .to eq([{ "controller" => "authors", "action" => "index" }])
    expect(requests("/books").first).to include("response" => { "code" => 200 },
      "rails" => { "controller" => "books", "action" => "create" },
      "request" => include("REQUEST_METHOD" => "POST", "PATH_INFO" => "/books/3"))
    expect(@answers[:found].map(&:code)).to eq(%w[200 404 404])
    expect(@answers[:found].map { |answer| answer.body.include?("config.ru") }).to eq([false, false, true])
    expect(requests("/found").map { |request| request["response"]["code"] }).to eq([200, 404, 404])
    expect(requests("/found").map { |request| request["exception"] })
      .to eq([nil, "ActiveRecord::RecordNotFound", "ActiveRecord::RecordNotFound"])
    expect(requests("/found").map { |request| request["rails"]["action"] }).to eq(%w[show show show])
  end
end
