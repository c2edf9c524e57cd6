# frozen_string_literal: true

require "json"
require "memprof/middleware"
require "rack"
require "rack/mock"
require "stringio"

# What a request may ask the middleware for, and what it prints of each.
RSpec.describe Memprof::Middleware do
  include_context "with the middleware"

  let(:kept) { [] }
  let(:line) { __LINE__ + 3 }
  let(:app) do
    ->(env) do
      1000.times { |number| +"text #{number}" } && kept << Array.new(50) { Object.new }
      env["action_dispatch.request.path_parameters"] = { controller: "orders", action: "index" }
      [200, { "content-type" => "text/plain" }, ["hello"]]
    end
  end

  def get(path, permit: ->(_env) { true }, accept: "text/html", **options)
    Rack::MockRequest.new(wrap(app, permit: permit, **options)).get(path, "HTTP_ACCEPT" => accept)
  end

  # Asks for what a request retains, and then for the result, as a browser does.
  def retained(path, app: self.app, method: "GET")
    middleware = Rack::MockRequest.new(wrap(app, permit: ->(_env) { true }))
    first = middleware.request(method, path)
    expect([first.status, first["location"]]).to match([303, /\A\?.*memprof=retained-\h+/])
    middleware.get("/else#{first["location"]}")
  end

  describe "?memprof=retained" do
    it "shows a leak of one object in each request, and nothing of the request" do
      code = <<~RUBY
        require "json"
        require "memprof/middleware"
        require "rack"
        require "rack/mock"
        LEAK = []
        def leak = LEAK << Object.new
        app = lambda do |env|
          leak
          env["controller"] = { env: env, params: { "page" => +"2" }, view: Array.new(20) { +"assigned" } }
          Thread.current[:controller] = env["controller"]
          env["response"] = [+"a header", Object.new]
          [200, { "x-text" => +"text" }, [env["controller"][:view].join]]
        end
        executor = lambda do |env|
          MIDDLEWARE.call(env)
        ensure
          Thread.current[:controller] = nil
        end
        MIDDLEWARE = Memprof::Middleware.new(app, permit: ->(_env) { true })
        SERVER = Rack::MockRequest.new(executor)
        def get(path) = Thread.new { SERVER.get(path).then { |answer| [answer["location"], answer.body] } }.value
        3.times do
          location, = get("/?memprof=retained.json")
          rows = JSON.parse(get("/\#{location}").last).fetch("retained")
          p(rows.map { |row| [*row.values_at("class", "line"), row.dig("retained", "objects")] })
        end
      RUBY
      result = run_ruby(code)
      expect(result.stderr).to be_empty
      expect(result.stdout.lines(chomp: true).last(2)).to eq ['[["Object", 6, 1]]'] * 2
    end

    it "redirects, also after a POST, and shows the request that was measured" do
      answer = retained("/orders?a=1&memprof=retained&b=2", method: "POST")
      expect(answer.body)
        .to include("<h1>POST /orders?a=1&amp;memprof=retained&amp;b=2 200, orders#index</h1>")
      expect(answer.body).to include("Retained by line").and include('href="?a=1&amp;memprof=flame&amp;b=2"')
      expect(kept.size).to eq(1)
      expect(sessions).to all(be_closed)
    end

    it "lists lines of the application before those of libraries, and in JSON all lines" do
      path = "/srv/gems/ruby/3.1.0/gems/big-1.0/lib/big.rb"
      library = Module.new
      library.module_eval("def self.keep(list) = list << ('x' * 100_000)", path, 1)
      lines = Array.new(30) { |number| "list << +'line #{number}'" }
      own = Module.new
      own.module_eval("def self.keep(list)\n#{lines.join("\n")}\nend", "/srv/shop/app/own.rb", 1)
      app = ->(_env) { [200, {}, [library.keep(kept).size.to_s, own.keep(kept).size.to_s]] }
      data = JSON.parse(retained("/?memprof=retained.json", app: app).body)
      files = data["retained"].map { |row| row["file"] }.select { |file| file.start_with?("/srv") }
      expect(files).to eq(["/srv/shop/app/own.rb"] * 30 + [path])
      text = retained("/?memprof=retained.txt", app: app).body
      expect(text.lines.grep(/own\.rb|big\.rb/).first).to include("own.rb")
    end

    it "shows a result again, and forgets the oldest" do
      middleware = Rack::MockRequest.new(wrap(app, permit: ->(_env) { true }))
      locations = Array.new(5) { middleware.get("/?memprof=retained.txt")["location"] }
      first = middleware.get("/#{locations[0]}")
      expect([first.status, first.body]).to match([404, /\Aprocess #{Process.pid} has no result \h+: /])
      answers = Array.new(2) { middleware.get("/#{locations[1]}").body }
      expect(answers).to all(match(/retained\n\n *Retained +Objects/)).and all(eq(answers.first))
      expect(sessions.count(&:closed?)).to eq(2)
    ensure
      sessions.each(&:close)
    end

    it "ends tracking if the app raises" do
      failing = wrap(->(_env) { raise "of the app" }, permit: ->(_env) { true })
      expect { failing.call(Rack::MockRequest.env_for("/?memprof=retained")) }.to raise_error("of the app")
      expect(sessions).to all(be_closed)
    end
  end

  describe "?memprof" do
    it "answers with the page of that request: lines that allocated most first, also of freed objects" do
      answer = get("/orders?page=2&token=abc&memprof=allocations")
      expect([answer.status, answer["content-type"]]).to eq([200, "text/html; charset=utf-8"])
      expect(answer["content-security-policy"]).to include("default-src 'none'")
      title = answer.body[%r{<h1>(.*)</h1>}, 1]
      expect(title).to eq("GET /orders?page=2&amp;token=[FILTERED]&amp;memprof=allocations 200, orders#index")
      rows = answer.body.scan(%r{<tr>.*?</tr>}m).map { |row| row.gsub(/<[^>]*>/, " ").squeeze(" ") }
      expect(rows[1]).to include(" String ").and include("#{File.basename(__FILE__)}:#{line}")
      expect(Integer(rows[1][/B ([\d,]+)/, 1].delete(","))).to be >= 1000
      expect(answer.body).to include('href="?page=2&amp;token=abc&amp;memprof=flame"')
      expect(printed.string).to be_empty
      expect(sessions).to all(be_closed)
    end

    it "answers with JSON, if that is accepted" do
      data = JSON.parse(get("/orders?memprof=flame", accept: "application/json").body)
      expect(data["request"]).to eq("method" => "GET", "url" => "/orders?memprof=flame", "status" => 200,
        "action" => "orders#index")
      first = data["allocated"].first
      expect(first.values_at("class", "line", "file")).to eq(["String", line, __FILE__])
      expect(first["freed"]["objects"]).to be > 900
      objects = data["retained"].find { |site| site["class"] == "Object" }
      expect(objects["retained"]["objects"]).to eq(50)
      expect(data["classes"].first["name"]).to eq("String")
      expect(data["gems"].sum { |group| group["allocated_objects"] })
        .to eq(data["classes"].sum { |group| group["allocated_objects"] })
      flame = data["flame"]
      expect(flame["frames"].first[3]).to be_within(500).of(data["totals"]["allocated"]["bytes"])
      expect(flame["names"]).to include("String").and include(a_string_ending_with("in Integer#times"))
    end

    it "answers HEAD without a body" do
      middleware = Rack::Lint.new(wrap(app, permit: ->(_env) { true }))
      answer = Rack::MockRequest.new(middleware).head("/orders?memprof=allocations")
      expect([answer.status, answer.body]).to eq([200, ""])
      expect(Integer(answer["content-length"])).to be > 1000
    end

    it "answers in the format that the parameter names, whatever is accepted" do
      %w[text/html application/json */*].each do |accept|
        text = get("/orders?memprof=allocations.txt", accept: accept)
        expect(text["content-type"]).to eq("text/plain; charset=utf-8")
        expect(text.body).to start_with("GET /orders?memprof=allocations.txt 200, orders#index\n")
        json = get("/orders?a=1&memprof=flame.json&b=2", accept: accept)
        expect(json["content-type"]).to eq("application/json; charset=utf-8")
        expect(JSON.parse(json.body)).to include("request", "flame")
      end
      %w[allocations.pdf allocations. .json json].each do |value|
        expect(get("/?memprof=#{value}").body).to eq("hello")
      end
    end

    it "draws a flame graph that carries its data" do
      page = get("/orders?memprof=flame").body
      json = page[/data-json="data:application\/json;base64,([^"]+)"/, 1]
      expect(JSON.parse(json.unpack1("m"))["names"]).to include("String")
      expect(page).to match(/<script nonce="[^"]+" type="module">/).and include('class="icicle"')
      text = get("/orders?memprof=allocations", accept: "text/plain").body
      expect(text).to match(/alive at its end\n\n *Allocated +Objects/)
    end

    it "works on the body to its end, and closes it" do
      body = Class.new do
        attr_reader :closed

        def each = yield(Array.new(70) { Object.new }.inspect)
        def close = @closed = true
      end.new
      response = wrap(->(_env) { [200, {}, body] }, permit: ->(_env) { true })
        .call(Rack::MockRequest.env_for("/?memprof=allocations", "HTTP_ACCEPT" => "application/json"))
      objects = JSON.parse(response.last.join)["classes"].find { |row| row["name"] == "Object" }
      expect([objects["allocated_objects"], body.closed]).to eq([70, true])
    end

    it "closes a body that raises" do
      closed = 0
      body = Enumerator.new { raise "in the body" }
      body.define_singleton_method(:close) { closed += 1 }
      failing = wrap(->(_env) { [200, {}, body] }, permit: ->(_env) { true })
      expect { failing.call(Rack::MockRequest.env_for("/?memprof=allocations")) }
        .to raise_error("in the body")
      expect(closed).to eq(1)
      expect(sessions).to all(be_closed)
    end

    it "is for those who are permitted, and for others a parameter like any" do
      asked = []
      refuse = ->(env) { asked << env["QUERY_STRING"] and false }
      %w[memprof=flame memprof=else xmemprof=flame].each do |query|
        expect(get("/?#{query}", permit: refuse).body).to eq("hello")
      end
      expect(asked).to eq(%w[memprof=flame])
      expect(get("/?memprof=flame", permit: false).body).to eq("hello")
      expect(get("/", permit: ->(_env) { raise "asked" }).body).to eq("hello")
    end

    it "is not permitted if permit raises, which is reported once" do
      middleware = Rack::MockRequest.new(wrap(app, permit: ->(_env) { raise NotImplementedError, "no user" }))
      expect { 2.times { expect(middleware.get("/?memprof=flame").body).to eq("hello") } }.to output(
        "memprof: the middleware permits nothing: no user (NotImplementedError); said only once\n"
      ).to_stderr
    end

    it "is permitted to all in development, and denied elsewhere by default" do
      allow(ENV).to receive(:[]).and_call_original
      { nil => "hello", "production" => "hello", "development" => "{" }.each do |environment, answer|
        allow(ENV).to receive(:[]).with("RACK_ENV").and_return(environment)
        hide_const("Rails") if defined?(Rails)
        body = get("/?memprof=allocations", permit: nil, accept: "application/json").body
        expect(body).to start_with(answer)
      end
    end

    it "passes exceptions of the app on, and ends tracking" do
      failing = wrap(->(_env) { raise "of the app" }, permit: ->(_env) { true })
      expect { failing.call(Rack::MockRequest.env_for("/?memprof=flame")) }.to raise_error("of the app")
      expect(sessions).to all(be_closed)
    end
  end

  describe "report: :allocations" do
    it "prints URL, action, totals, and the lines that allocated most, by class and gem" do
      get("/orders?password=x&page=2", report: :allocations, limit: 2)
      first, second, title, totals, blank, head, row, *rest = printed.string.lines.map(&:chomp)
      expect([first, second, blank]).to eq(["", "-" * 80, ""])
      expect(title).to eq("GET /orders?password=[FILTERED]&page=2 200, orders#index")
      expect(totals).to match(/\A[12],\d+ objects \(.* KiB\) allocated, .* \(.*\) alive at its end\z/)
      expect(head).to match(/\AAllocated +Objects +Freed/)
      expect(row).to match(/ KiB +[12],\d\d\d .* String +.*endpoint_spec\.rb:#{line} in /)
      expect(rest.join("\n")).to match(/by class  String/).and match(/by gem/)
      expect(printed.string).not_to include("Retained %")
    end

    it "prints what is retained, too, if garbage is collected first" do
      get("/orders", report: :allocations, force_gc: true)
      expect(printed.string).to match(/ retained\n/).and match(/^Retained +Objects/)
      expect(printed.string).to match(/ 50 +100 % +Object /)
    end

    it "refuses what it can't do" do
      expect { wrap(app, report: :all) }
        .to raise_error(ArgumentError, /report must be one of live, allocations, not :all/)
      expect { wrap(app, permit: 1) }
        .to raise_error(ArgumentError, /permit must be callable or false, not 1/)
    end
  end
end
