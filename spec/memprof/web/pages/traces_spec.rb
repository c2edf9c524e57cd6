# frozen_string_literal: true

require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe "traced requests in Memprof::Web" do
  include WebBrowser

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:app) do
    File.write("requests.json", lines.join)
    web_app.tap { |app| app.heaps.records.add("requests.json", :trace) }
  end

  let(:lines) do
    lines = Array.new(120) { |number| "#{JSON.generate(request(number))}\n" }
    lines.insert(3, "this is no request\n")
  end

  # Every tenth takes long; the slower the more objects.
  def request(number)
    time = number % 10 == 9 ? 1.0 + number / 1000.0 : 0.01
    {
      start: 1_700_000_000_000_000 + number * 1_000_000,
      tracers: {
        objects: { created: (time * 1000).round, bytes: 40 }, gc: { calls: number % 2, time: 0.001 }
      },
      rails: { controller: "users", action: number % 10 == 9 ? "index" : "show" },
      request: { PATH_INFO: "/users/#{number}", REQUEST_METHOD: "GET" }, response: { code: 200 }, time: time
    }
  end

  def json(path) = ask(app, path.sub(/(\?|\z)/, '.json\1')).json

  it "is what is shown if there is nothing else" do
    expect(ask(app, "/").location).to eq("/traces/1")
    expect(ask(app, "/traces").location).to eq("/traces/1")
    app.heaps.records.add("requests.json", :trace)
    expect(ask(app, "/traces").links).to include("/traces/1", "/traces/2")
  end

  it "is in the menu only where there is such a file" do
    expect(ask(app, "/heaps").links).to include("/traces")
    expect(ask(app, "/heaps").links).not_to include("/tracked")
    expect(ask(web_app, "/heaps").links).not_to include("/traces")
  end

  it "shows what the requests cost as memprof trace does" do
    data = json("/traces/1")
    log = File.open("requests.json", "rb") { |io| NaiveTraceLog.read(io) }
    expect(data).to include(requests: 120, broken: 1)
    expect(data[:costs]).to eq(JSON.parse(JSON.generate(log.costs), symbolize_names: true)
      .map { |cost| cost.merge(unit: cost[:unit].to_s) })
    expect(data[:groups].map { |group| [group[:name], group[:requests]] })
      .to eq([["users#index", 12], ["users#show", 108]])
    expect(data[:worst].map { |row| row[:path] }.first(2)).to eq(["GET /users/119", "GET /users/109"])
    page = ask(app, "/traces/1").body
    expect(page).to include("120 requests", "Skipped 1 invalid line", "2023-11-14 22:13:20.000 UTC", "1.12 s")
  end

  it "sorts by any cost, groups, and shows one group alone" do
    data = json("/traces/1?sort=gc_calls&by=path")
    expect(data[:worst].first[:costs][:gc_calls]).to eq(1)
    expect(data[:more_groups]).to eq(95)
    only = json("/traces/1?only=users%23index")
    expect([only[:chosen], only[:worst].map { |row| row[:action] }.uniq]).to eq([12, ["users#index"]])
    expect(json("/traces/1?page=3")[:worst].size).to eq(20)
    expect(ask(app, "/traces/1?page=999999999").status).to eq(404)
    expect(ask(app, "/traces/1?sort=colour").body).to include("expected one of: time, objects")
  end

  it "draws when they came, each bar a link to the most costly" do
    parts = json("/traces/1")[:timeline][:parts]
    expect(parts.sum { |part| part[:requests] }).to eq(120)
    slow = parts.max_by { |part| part[:max] }
    expect(ask(app, "/traces/1").links).to include("/traces/1/requests/#{slow[:line]}")
    expect(json("/traces/1/requests/#{slow[:line]}")[:path]).to eq("GET /users/119")
  end

  it "shows a part of the time" do
    part = json("/traces/1?from=9.5&to=29&sort=objects")
    expect(part[:range]).to eq(from: 9.5, to: 29.0, requests: 20)
    expect([part[:requests], part[:duration], part[:chosen]]).to eq([120, 119.0, 20])
    expect(part[:worst].map { |row| row[:path] }.values_at(0, 1)).to eq(["GET /users/29", "GET /users/19"])
    expect(part[:costs].find { |cost| cost[:kind] == "gc_calls" }).to include(total: 10, max: 1)
    expect(part[:groups].map { |group| group[:requests] }.sum).to eq(20)
    expect(part[:timeline]).to eq(json("/traces/1?sort=objects")[:timeline])
    expect(json("/traces/1?from=100")[:range]).to eq(from: 100.0, to: nil, requests: 20)
    expect(json("/traces/1?to=0")).to include(range: { from: 0.0, to: 0.0, requests: 1 }, costs: be_any)
    none = { range: include(requests: 0), costs: [], groups: [], worst: [] }
    expect(json("/traces/1?from=500")).to include(none)
    expect(json("/traces/1?from=&to=")[:range]).to be_nil
  end

  it "shows the part of the time, keeps it, and leads back to all" do
    body = ask(app, "/traces/1?from=9.5&to=29&sort=objects&by=path").body
    expect(body).to include("20 of 120 requests", 'name="from" value="9.5"', 'name="to" value="29.0"',
      'class="outside"', 'name="sort" value="objects"')
    links = ask(app, "/traces/1?from=9.5&to=29").links
    expect(links).to include("/traces/1?from=9.5&to=29&sort=objects", "/traces/1")
    expect(ask(app, "/traces/1?from=500").body).to include("0 of 120 requests", "None.")
    expect(ask(app, "/traces/1").body).not_to include('class="outside"')
  end

  it "says what is no part of the time" do
    { "from=x" => "expected seconds", "to=-1" => "expected seconds", "from=5&to=4" => "at least from",
      "from=NaN" => "expected seconds", "to=1e999" => "expected seconds" }.each do |query, words|
      answer = ask(app, "/traces/1?#{query}")
      expect([answer.status, answer.body]).to match([400, include(words)]), query
    end
    File.write("block.json", %({"objects":{"created":10,"bytes":400}}\n))
    app.heaps.records.add("block.json", :trace)
    expect(ask(app, "/traces/2?from=1").body).to include("these requests have no start times")
  end

  it "shows one request completely" do
    data = json("/traces/1/requests/121")
    expect(data[:record]).to eq(JSON.parse(lines.last, symbolize_names: true))
    expect(data[:ranks]).to include(time: 1, objects: 1, gc: 1)
    page = ask(app, "/traces/1/requests/121").body
    expect(page).to include("<dt>PATH_INFO</dt><dd>/users/119</dd>", "1 of 120")
    expect(ask(app, "/traces/1/requests/4").status).to eq(404)
    expect(ask(app, "/traces/1/requests/x").body).to include("line x is not a request")
  end

  it "shows SQL statements of all requests and of one" do
    one = { sql: "select ? <script>", caller: "app.rb:7 in page", queries: 9, time: 0.5, slowest: 0.25,
            n_plus_one: true }
    record = request(1).tap { |all| all[:tracers][:sql] = { queries: 9, time: 0.5, statements: [one] } }
    File.write("sql.json", "#{JSON.generate(record)}\n" * 2)
    app.heaps.records.add("sql.json", :trace)
    expect(json("/traces/2")[:statements])
      .to match([include(requests: 2, n_plus_one: 2, queries: 18, slowest: 0.25)])
    expect(json("/traces/2/requests/2")[:statements]).to match([include(n_plus_one: true, queries: 9)])
    ["/traces/2", "/traces/2/requests/2"].each do |path|
      body = ask(app, path).body
      expect(body).to include("SQL statements", "select ? &lt;script&gt;", "app.rb:7 in page", "500 ms")
    end
    expect(ask(app, "/traces/1").body).not_to include("SQL statements")
  end

  it "adds up the lines that allocate in all requests" do
    line = { location: "app.rb:7 in Page#row", class: "Row<script>", count: 1234, bytes: 2048 }
    lines = [line, { **line, location: "b.rb:1" }]
    record = request(1).merge(tracers: { objects: { created: 9, lines: lines } })
    File.write("all.json", "#{JSON.generate(record)}\n" * 3)
    app.heaps.records.add("all.json", :trace)
    expect(json("/traces/2")[:allocations])
      .to eq(["app.rb:7 in Page#row", "b.rb:1"].map { |location|
               { location: location, class: "Row<script>", requests: 3, objects: 3702, bytes: 6144 }
             })
    expect(ask(app, "/traces/2").body)
      .to include("Lines that allocate the most", "app.rb:7 in Page#row", "Row&lt;script&gt;", "3,702",
        "6.0 KiB")
    expect(ask(app, "/traces/1").body).not_to include("Lines that allocate")
  end

  it "shows the lines that allocate in one request" do
    line = { location: "app.rb:7 in Page#row", class: "Row<script>", count: 1234, bytes: 2048 }
    record = request(1)
    records = [[line], [], [1, [2]], { error: "lost" }, nil].map do |all|
      record.merge(tracers: { objects: { created: 9, lines: all } })
    end
    File.write("lines.json", records.map { |one| "#{JSON.generate(one)}\n" }.join)
    app.heaps.records.add("lines.json", :trace)
    expect(ask(app, "/traces/2/requests/1").body)
      .to include("Lines that allocate the most", "app.rb:7 in Page#row", "Row&lt;script&gt;", "1,234",
        "2.0 KiB")
    (2..5).each do |number|
      answer = ask(app, "/traces/2/requests/#{number}")
      expect([answer.status, answer.body]).to match([200, /PATH_INFO/]), number.to_s
    end
  end

  it "escapes what requests say" do
    hostile = "</dd><script>alert(1)</script>\e[31m"
    record = request(1).merge(request: { PATH_INFO: hostile, hostile => hostile })
    File.write("hostile.json", "#{JSON.generate(record)}\n")
    app.heaps.records.add("hostile.json", :trace)
    ["/traces/2", "/traces/2?by=path", "/traces/2/requests/1"].each do |path|
      body = ask(app, path).body
      expect(body).to include("&lt;script&gt;")
      expect(body).not_to include("<script>", "\e")
    end
  end

  it "shows blocks without a time" do
    File.write("block.json", %({"objects":{"created":10,"bytes":400}}\n))
    app.heaps.records.add("block.json", :trace)
    page = ask(app, "/traces/2")
    expect([page.status, page.body]).to match([200, /1 request.*block/m])
    expect(page.body).not_to include("<svg class=\"timeline\"")
  end

  it "says what is wrong with a file" do
    File.write("requests.json", "")
    app.heaps.records.add("gone.json", :trace)
    expect(ask(app, "/traces/2").body).to include("read gone.json: No such file or directory")
    expect(ask(app, "/traces/3").status).to eq(404)
    expect(ask(app, "/tracked/1").status).to eq(404)
  end
end
