# frozen_string_literal: true

require "fileutils"
require "json"
require "memprof/web"
require "rack"
require "tmpdir"

# A program plants leaks in libraries; what is named is the line of the program, which knows it.
RSpec.describe "The line of one's own code behind a leak" do
  include WebBrowser

  # Retains callbacks as the client of a database does.
  library = <<~RUBY
    module Callbacks
      Entry = Struct.new(:name, :body)
      ENTRIES = []
      def self.register(name, &body) = ENTRIES << Entry.new(name, body)
    end
  RUBY

  program = <<~'RUBY'
    require "memprof"
    require "callbacks"
    begin
      require "active_support"
      require "active_support/notifications"
    rescue LoadError
      nil
    end
    Memprof.start

    def body = "b" * 8_000
    def notify(body)
      ActiveSupport::Notifications.subscribe("sold") { body.size } # subscriber
    end
    def call_back(body)
      Callbacks.register(:done) { body.size } # callback
    end
    def remember
      (Thread.current[:pages] ||= []) << body.succ # thread-local
    end
    def define(number, body)
      Api.define_method(:"page_#{number}") { body } # method
    end
    module Api; end

    1_000.times do |number|
      notify(body) if defined?(ActiveSupport)
      call_back(body)
      remember
      define(number, body)
    end
    Memprof.dump_all("leaks.memprof")
    puts defined?(ActiveSupport) ? "subscriber" : "none"
  RUBY

  before(:all) do
    @directory = Dir.mktmpdir("memprof-own-")
    @gem = File.join(@directory, "gems", "callbacks-1.0", "lib")
    FileUtils.mkdir_p(@gem)
    File.write(File.join(@gem, "callbacks.rb"), library)
    @app = File.join(@directory, "app.rb")
    File.write(@app, program)
    result = run_ruby(@app, ruby_args: ["-I#{@gem}"], chdir: @directory)
    raise result.stderr unless result.success?

    @subscriber = result.stdout.include?("subscriber")
    @dump = File.join(@directory, "leaks.memprof")
  end

  after(:all) { FileUtils.rm_rf(@directory) if @directory }

  line = ->(what) { program.lines.index { |text| text.include?("# #{what}") } + 1 }

  def leaks(*options)
    all = %w[--no-index --threshold 4 --limit 10]
    stdout, stderr, status = run_memprof("leaks", *all, *options, @dump)
    expect(status.exitstatus).to eq(0), stderr
    stdout
  end

  def own(*options)
    answer = JSON.parse(leaks("--json", *options), symbolize_names: true)
    answer[:findings].filter_map { |finding| finding[:own] }
  end

  %w[callback method subscriber thread-local].each do |what|
    it "is found (#{what})" do
      skip "ActiveSupport is not installed" if what == "subscriber" && !@subscriber

      number = line[what]
      found = own.find { |code| code[:line] == number }
      expect(found).to include(file: @app, count: be_between(990, 1_000))
      expect(found[:source]).to eq(program.lines[number - 1].strip)
    end
  end

  it "is printed with its source" do
    skip "ActiveSupport is not installed" unless @subscriber

    text = leaks
    file, number, source = text.match(/^Application +(\S+?):(\d+) in \w+\nSource +(.+)$/).captures
    expect(file).to eq(@app)
    expect(program.lines[number.to_i - 1].strip).to start_with(source.delete_suffix("..."))
    callback = text.gsub(/\n {2,}/, " ").split(/^\d\. /).grep(/1,000 Callbacks::Entry instances/).first
    expect(callback).to match(/^Retained by +Callbacks::ENTRIES -> Array\[\*\]$/)
    expect(callback).to match(/^Application +\S*app\.rb:#{line["callback"]} in call_back$/)
    expect(callback).to match(/^Because +the block written at \S*:#{line["callback"]} captures local body$/)
    expect(leaks("--format", "csv").lines.first.chomp).to include(",site,own,")
  end

  it "is in the files that --own names" do
    names = own("--own", "/callbacks-1\\.0/").map { |code| File.basename(code[:file]) }
    expect(names).to eq(["callbacks.rb"])
    expect(own("--own", "no such file")).to eq([])
    _, stderr, status = run_memprof("leaks", "--no-index", "--own", "(", @dump)
    expect([status.exitstatus, stderr.lines.size]).to eq([2, 1])
    expect(stderr).to include("invalid --own: the regexp is not valid")
  end

  it "is on the page, and in its JSON" do
    app = web_app(@dump)
    number = line["callback"]
    data = ask(app, "/heaps/1/leaks.json?threshold=4").json
    expect(data[:findings].filter_map { |finding| finding.dig(:own, :line) }).to include(number)
    body = ask(app, "/heaps/1/leaks?threshold=4").body
    expect(body).to include("the block written at", "Callbacks.register(:done)")
    expect(ask(app, "/heaps/1/leaks?own=%28").status).to eq(400)
  end
end
