# frozen_string_literal: true

# Heaps to dump: one that resembles a program's, of any size, and that of a Rails app.
module Heaps
  # Objects per record of a program.
  PER_RECORD = 5

  # Resembles a model: a few instance variables that reference Ruby's most common objects.
  class Customer
    def initialize(number, chance, other)
      @number = number
      @name = "customer #{chance.rand(1_000_000_000)}"
      @tags = [:new, chance.rand(100), other]
      @address = { "mail" => "#{chance.rand(1 << 64)}@shop.example.com", :country => chance.rand(200) }
    end
  end

  module_function

  # The numbers of objects in a benchmark's heaps: from BENCH_OBJECTS, else these.
  def sizes(*full)
    given = ENV.fetch("BENCH_OBJECTS", nil)
    return given.split(",").map { |size| Integer(size) } if given

    Bench::QUICK ? [100_000] : full
  end

  # Objects with four instance variables, embedded and heap-allocated strings, small arrays and hashes. Their
  # contents are random, the same in each run: they must not compress better than a program's.
  #
  # @return [Object] retains the heap
  def program(objects)
    chance = Random.new(42)
    made = []
    (objects / PER_RECORD).times do
      made << Customer.new(made.size, chance, made[chance.rand(made.size + 1) - 1])
    end
    made
  end

  # The parts of Rails that need no database.
  FRAMEWORKS = %w[action_controller action_view action_mailer active_job action_cable].freeze

  # A Rails app with as much of Rails as is installed, loaded as in production, after some requests.
  def rails
    require "logger" # Rails 6.1 and 7.0 forget it
    require "rails"
    FRAMEWORKS.each { |name| load_framework(name) }
    require "rack/mock"
    app = rails_app
    app.initialize!
    client = Rack::MockRequest.new(app)
    20.times { client.get("/orders", "HTTP_USER_AGENT" => "Example/1.0") }
    app
  end

  def load_framework(name)
    require "#{name}/#{name == "action_cable" ? "engine" : "railtie"}"
  rescue LoadError
    nil # not installed
  end

  def rails_app
    controller = Class.new(ActionController::Base) { def index = render(plain: "orders") }
    Object.const_set(:OrdersController, controller)
    app = Class.new(Rails::Application) do
      config.load_defaults("#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}")
      config.eager_load = true
      config.secret_key_base = "0" * 64
      config.logger = Logger.new(IO::NULL)
      config.hosts.clear if config.respond_to?(:hosts)
      routes.append { get("/orders", to: "orders#index") }
    end
    # Railties of other gems, such as globalid's, ask the app for its name.
    Object.const_set(:HeapApp, app)
  end

  # Even an installed Rails may lack a gem for this Ruby.
  def rails?
    load = "%w[rails action_controller/railtie].each { |name| require name }"
    system(RbConfig.ruby, "-rlogger", "-e", load, %i[out err] => File::NULL)
  end
end
