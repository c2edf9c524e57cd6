# frozen_string_literal: true

require_relative "rspec/matchers"
require_relative "rspec/costly_examples"

if RSpec.respond_to?(:configure)
  RSpec.configure do |config|
    config.include(Memprof::RSpec::Matchers)
    Memprof::RSpec::CostlyExamples.install(config)
  end
end
