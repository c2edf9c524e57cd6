# frozen_string_literal: true

require "memprof"
require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe "tracked allocations in Memprof::Web" do
  include WebBrowser

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:report) { Memprof.report(stack: 32) { $made = Array.new(30) { |number| "number #{number}" } } }
  let(:app) do
    File.write("report.json", report.to_json) unless File.exist?("report.json")
    File.write("stats.txt", "     12 app.rb:3:<b>String\n")
    web_app.tap { |app| %w[report.json stats.txt].each { |file| app.heaps.records.add(file, :tracked) } }
  end

  after { $made = nil }

  # Each frame with those above it, and what it weighs.
  def ways(data)
    names = data[:names]
    data[:frames].each_with_object([]) do |(above, name, _, weight), ways|
      ways << [[*(ways[above].first if above.positive?), names[name]].join(" > "), weight]
    end
  end

  def json(path) = ask(app, path.sub(/(\?|\z)/, '.json\1')).json

  it "shows lines, classes, files, gems and methods by any value" do
    data = json("/tracked/1?by=class&sort=retained_objects")
    expect(data[:rows].find { |row| row[:key] == "String" }).to include(retained_objects: 30)
    %w[site file gem method].each do |by|
      rows = json("/tracked/1?by=#{by}&sort=allocated_bytes&internal=yes")[:rows]
      expect(rows.sum { |row| row[:allocated_bytes] }).to eq(report.total_allocated_memsize), by
      expect(ask(app, "/tracked/1?by=#{by}").status).to eq(200)
    end
    page = ask(app, "/tracked/1").body
    expect(page).to include("tracked_spec.rb:", "#{report.total_allocated} objects")
  end

  it "sums up what the VM allocates for itself, and lists it if asked" do
    amounts = { "objects" => 3, "bytes" => 120 }
    site = { file: "app.rb", line: 1, method: "a", gem: "other", retained: amounts, allocated: amounts,
             freed: amounts, stack: [] }
    sites = %w[<callcache> <array> String].map { |name| { class: name, **site } }
    File.write("report.json", JSON.generate(format: "memprof-report", sites: sites))

    classes = ->(query) { json("/tracked/1?by=class#{query}")[:rows].map { |row| row[:key] } }
    expect(classes.call("")).to eq(%w[<array> String])
    expect(json("/tracked/1")[:internal]).to include(retained_objects: 3, allocated_bytes: 120)
    expect(classes.call("&internal=yes")).to eq(%w[<array> <callcache> String])
    expect(ask(app, "/tracked/1").body)
      .to include("Excluded: VM-internal objects, 120 B retained bytes, 3 retained")
  end

  it "draws the stacks" do
    data = json("/tracked/1/flame?value=retained_objects")
    expect(data[:frames].first[3]).to eq(report.total_retained)
    page = ask(app, "/tracked/1/flame?value=retained_objects").body
    expect(page).to include('data-json="/tracked/1/flame.json?value=retained_objects"', 'data-unit="count"')
    expect(page).to match(%r{<text x="4" y="13">String</text>})
  end

  it "shows lines of stats, and says that they have no stacks" do
    expect(json("/tracked/2")[:rows]).to match([include(objects: 12, site: include(file: "app.rb", line: 3))])
    expect(ask(app, "/tracked/2").body).to include("&lt;b&gt;String")
    expect(ask(app, "/tracked/2/flame").body).to include("This file has no call stacks")
  end

  it "is marked in the menu, also where it goes deeper" do
    ["/tracked/1", "/tracked/1/flame"].each do |path|
      expect(ask(app, path).body.scan(/<a[^>]*aria-current="true">([^<]*)/).flatten).to include("Allocations")
    end
  end

  it "writes places short in pictures" do
    File.write("stacks.txt", "/usr/gems/rack-2.2.4/lib/rack.rb:7:in call;String 3\n")
    app.heaps.records.add("stacks.txt", :tracked)
    expect(json("/tracked/3/flame")[:names]).to eq(["all", "rack-2.2.4/lib/rack.rb:7:in call", "String"])
    {
      "block (2 levels) in go (/usr/gems/a-2.2/lib/a.rb:7)" => "block (2 levels) in go (a-2.2/lib/a.rb:7)",
      "go (/srv/shop (old)/app.rb:9)" => "go (/srv/shop (old)/app.rb:9)", "Array#map" => "Array#map"
    }.each { |frame, short| expect(Memprof::Web::Records::Tracked.short(frame)).to eq(short) }
    File.write("places.txt", "block (2 levels) in go (/srv/shop (old)/app.rb:9);String 3\n")
    app.heaps.records.add("places.txt", :tracked)
    expect(json("/tracked/4")[:rows].first[:site]).to include(file: "/srv/shop (old)/app.rb", line: 9)
  end

  it "leaves the frames of gems and Ruby out where that is wanted" do
    File.write("stacks.txt", <<~TEXT)
      /srv/shop/app/job.rb:3:in run;/usr/gems/rack-2.2.4/lib/rack.rb:7:in call;/srv/shop/app/job.rb:9:in go;String 3
      /srv/shop/app/job.rb:3:in run;/usr/lib/ruby/3.1.0/set.rb:2:in add;<internal:kernel>:1:in tap;Set 5
      call (/usr/gems/rack-2.2.4/lib/rack.rb:7);Array#map;Array 2
      go (/srv/shop/app/job.rb:9);Array#map;Array 4
    TEXT
    app.heaps.records.add("stacks.txt", :tracked)
    own = json("/tracked/3/flame?own=yes")
    expect(ways(own)).to eq([
      ["all", 14], ["/srv/shop/app/job.rb:3:in run", 8],
      ["/srv/shop/app/job.rb:3:in run > /srv/shop/app/job.rb:9:in go", 3],
      ["/srv/shop/app/job.rb:3:in run > /srv/shop/app/job.rb:9:in go > String", 3],
      ["/srv/shop/app/job.rb:3:in run > Set", 5], ["(gems and Ruby)", 2], ["(gems and Ruby) > Array", 2],
      ["go (/srv/shop/app/job.rb:9)", 4], ["go (/srv/shop/app/job.rb:9) > Array#map", 4],
      ["go (/srv/shop/app/job.rb:9) > Array#map > Array", 4]
    ])
    all = json("/tracked/3/flame")
    expect([all, own].map { |data| [data[:own], data[:frames].size] }).to eq([[false, 14], [true, 10]])
    expect(ways(all)).to include(["call (rack-2.2.4/lib/rack.rb:7) > Array#map > Array", 2])
    page = ask(app, "/tracked/3/flame?own=yes&value=weight")
    expect(page.body).to include('data-json="/tracked/3/flame.json?value=weight&amp;own=yes"')
    expect(page.links).to include("/tracked/3/flame?value=weight")
    expect(ask(app, "/tracked/3/flame").links).to include("/tracked/3/flame?own=yes")
    expect(ask(app, "/tracked/3/flame?own=x").status).to eq(400)
  end

  it "compares the stacks of two files" do
    { "before.txt" => "a;b;String 3\na;c;Array 5\n", "after.txt" => "a;b;String 9\n" }.each do |name, text|
      File.write(name, text)
      app.heaps.records.add(name, :tracked)
    end
    data = json("/tracked/4/flame?before=3")
    expect(data[:frames].to_h { |frame| [data[:names][frame[1]], frame.last(2)] })
      .to eq("all" => [8, 9], "a" => [8, 9], "b" => [3, 9], "String" => [3, 9],
        "c" => [5, 0], "Array" => [5, 0])
    page = ask(app, "/tracked/4/flame?before=3")
    expect(page.body).to include("before.txt → after.txt", 'class="grew3"', 'class="shrank4"')
    expect(page.links).to include("/tracked/4/flame")
    expect(ask(app, "/tracked/1/flame?before=3").body)
      .to include("before.txt has no retained_bytes; only weight")
  end

  it "compares two reports as memprof diff does" do
    later = Memprof.report(stack: 32) { $made = Array.new(50) { |number| "number #{number}" } }
    File.write("later.json", later.to_json)
    app.heaps.records.add("later.json", :tracked)
    data = json("/tracked/3/diff?before=1&by=class&sort=retained_objects")
    expect(data[:rows].find { |row| row[:name] == "String" }[:retained_objects])
      .to include(before: 30, after: 50, change: 20)
    expect(data[:totals]).to eq(Memprof::Check::Comparison.of_files(["report.json"], ["later.json"]).totals)
    page = ask(app, "/tracked/3/diff?before=1")
    expect(page.body).to include("report.json → later.json", "tracked_spec.rb:",
      "memprof diff report.json later.json")
    expect(page.links).to include("/tracked/3/diff?before=1&by=gem",
      "/tracked/3/flame?before=1&value=allocated_bytes")
    links = [1, 2, 3].map { |id| ask(app, "/tracked/#{id}").links.grep(/diff/) }
    expect(links).to eq([["/tracked/1/diff?before=3"], [], ["/tracked/3/diff?before=1"]])
    expect(ask(app, "/tracked/3/diff").headers["location"]).to end_with("/tracked/3/diff?before=1")
    expect(ask(app, "/tracked/3/diff?before=2").status).to eq(400)
    expect(ask(app, "/tracked/2/diff").body).to include("a comparison needs an earlier report: before=1")
  end

  it "says what is wrong with a question" do
    expect(ask(app, "/tracked/2?sort=retained_bytes").body).to include("expected one of: objects")
    expect(ask(app, "/tracked/1?by=colour").status).to eq(400)
    expect(ask(app, "/traces/1").status).to eq(404)
  end
end
