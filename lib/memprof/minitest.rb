# frozen_string_literal: true

begin
  require "minitest"
rescue LoadError => error
  raise LoadError, "memprof/minitest needs Minitest, which cannot be loaded (#{error.message}): " \
    "install the gem minitest, or use memprof/rspec", cause: nil
end

require_relative "minitest/assertions"
require_relative "minitest/expectations"

# `require "memprof/minitest"` in test_helper.rb gives every test the assertions of
# Memprof::Minitest::Assertions.
mixins = { Minitest::Test => Memprof::Minitest::Assertions }
mixins[Minitest::Expectation] = Memprof::Minitest::Expectations if defined?(Minitest::Expectation)
mixins.each { |target, mixin| target.include(mixin) }
