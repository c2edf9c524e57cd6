# frozen_string_literal: true

require "memprof/agent/settings"
require "tmpdir"

RSpec.describe "Memprof::Railtie" do
  app = File.expand_path("../fixtures/apps/rails/memprof_app.rb", __dir__)

  before(:all) do
    found = run_ruby("require 'logger'; require 'rails'; require 'action_controller/railtie'")
    skip "Rails is not installed (the package ruby-railties, the gem railties)" unless found.success?
  end

  def lines(app, **env)
    stdout, stderr, status = run_ruby(app, env: { "MEMPROF_AGENT" => nil }.merge(env.transform_keys(&:to_s)))
    expect(status).to be_success, stderr
    stdout.lines.map(&:chomp)
  end

  it "does nothing by default in production" do
    output = lines(app, RAILS_ENV: "production")
    expect(output).to match(["orders 200", "web 127.0.0.1 404", "web 192.0.2.1 404",
      "agent off", /\ACompleted 200 OK in ((?!Allocated objects).)*\z/])
  end

  it "starts the agent, mounts pages for this machine, and counts actions" do
    output = lines(app, RAILS_ENV: "development", AGENT: "1", REQUESTS: "1")
    expect(output).to match(["orders 200", "web 127.0.0.1 200", "web 192.0.2.1 404", "agent 7",
      /\Arow OrdersController#index 1 \d+\z/, /\ACompleted 200 OK .*Allocated objects: \d+/])
    expect(output[4][/\d+\z/].to_i).to be_between(500, 100_000)
  end

  it "may be loaded when the application has booted, as in a console" do
    stdout, stderr, status = run_ruby(<<~RUBY, env: { "MEMPROF_AGENT" => nil })
      require "logger"
      require "rails"
      require "action_controller/railtie"

      class Shop < Rails::Application
        config.eager_load = false
        config.secret_key_base = "0" * 64
        config.logger = Logger.new(IO::NULL)
      end
      Shop.initialize!
      require "memprof"
      puts Memprof::Railtie.name
    RUBY
    expect(status).to be_success, stderr
    expect(stdout).to eq("Memprof::Railtie\n")
  end

  it "is there, too, if memprof was loaded before Rails: by its command, by RUBYOPT" do
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "app.rb"), <<~RUBY)
        require "logger"
        require "rails"
        require "memprof"
        puts Class.new(Rails::Application).config.memprof.requests?
      RUBY
      shown = %w[autorun boot/autorun signal agent].map do |file|
        stdout, stderr, = run_ruby(File.join(directory, "app.rb"), ruby_args: ["-rmemprof/#{file}"], env: {
          "MEMPROF_AGENT" => "on", "MEMPROF_DIR" => directory, "MEMPROF_OUTPUT" => File::NULL,
          "MEMPROF_RUN_DIRECTORY" => directory
        })
        [stdout, stderr.lines.grep_v(/memprof agent/)]
      end
      expect(shown.map { |stdout, _| stdout.lines.first }).to all(eq("false\n")), shown.inspect
    end
  end

  it "starts no agent if MEMPROF_AGENT forbids it" do
    expect(lines(app, RAILS_ENV: "development", AGENT: "1", MEMPROF_AGENT: "off")).to include("agent off")
  end

  it "counts jobs, also those that raise" do
    skip "Active Job is not installed" unless run_ruby("require 'logger'; require 'active_job'").success?

    stdout, stderr, status = run_ruby(<<~RUBY, env: { "MEMPROF_AGENT" => nil })
      require "logger"
      require "rails"
      require "action_controller/railtie"
      require "active_job/railtie"
      require "memprof"

      class Shop < Rails::Application
        config.eager_load = false
        config.secret_key_base = "0" * 64
        config.logger = Logger.new(IO::NULL)
        config.memprof.requests = true
        config.active_job.queue_adapter = :inline
      end
      Shop.initialize!

      class Good < ActiveJob::Base
        def perform = Array.new(300) { Object.new }
      end

      class Bad < ActiveJob::Base
        def perform = raise("as asked")
      end

      2.times { Good.perform_later }
      Bad.perform_later rescue puts $!.message
      rows = Memprof::Agent::Work.rows(:job).to_h { |row| [row.name, row] }
      puts rows.fetch("Good").count, rows.fetch("Good").objects, rows.fetch("Bad").count
    RUBY
    expect(status).to be_success, stderr
    message, good, objects, bad = stdout.lines.map(&:chomp)
    expect([message, good, bad]).to eq(["as asked", "2", "1"])
    expect(objects.to_i).to be_between(600, 20_000)
  end

  it "has Rake tasks, a generator, and a method for consoles" do
    skip "Rake is not installed" unless run_ruby("require 'rake'").success?

    Dir.mktmpdir do |directory|
      tasks = File.expand_path("../fixtures/apps/rails/memprof_tasks.rb", __dir__)
      stdout, stderr, status = run_ruby(tasks, args: [directory], env: { "MEMPROF_AGENT" => nil })
      expect(status).to be_success, stderr

      routes, leak, none, generator = stdout.split(/^(?=\d+ sites? grow|Nothing grows|\s+create)/)
      expect(routes).to start_with("What a request costs, on average of 4:\n\nRequest")
      rows = routes.lines.grep(%r{\A/}).map(&:split)
      expect(rows.map { |path, answer| [path, answer] })
        .to contain_exactly(%w[/ 200], %w[/orders 200], %w[/history 200], %w[/seldom 200])
      # Of each path, what Rails retains until the next request may count, too.
      expect(rows.to_h { |row| [row.first, row[5].to_i] })
        .to match("/" => (0..3), "/orders" => (0..3), "/history" => (4..7), "/seldom" => (1..4))
      expect(routes).to end_with("and 1 more: rake memprof:routes[4,5]\n")
      expect(leak).to match(/OrdersController::HISTORY -> Array/)
      expect(none).to start_with("Nothing grows over 4 runs.")
      expect(generator).to match(/create  config.initializers.memprof.rb\n.*identical /m)
      expect(generator).to match(/^ +120 B +3 .*memprof_tasks\.rb:\d+/)
      expect(generator).to end_with("status 1\nstatus 1\n")
      expect(stderr).to include("memprof: count must be a whole number above 0 (got no)\n")
        .and include("memprof: GET /broken answers 500\n")

      initializer = File.read(File.join(directory, "config/initializers/memprof.rb"))
      names = initializer.scan(/^  # config\.memprof\.(\w+) = /).flatten.map(&:to_sym)
      expect(names).to eq(%i[enabled requests web permit] + Memprof::Agent::Settings::TABLE.keys)
    end
  end
end
