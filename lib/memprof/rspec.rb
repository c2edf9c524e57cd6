# frozen_string_literal: true

require_relative "rspec/matchers"

# `require "memprof/rspec"` in spec_helper.rb gives every example the matchers of {Memprof::RSpec::Matchers}.
RSpec.configure { |config| config.include(Memprof::RSpec::Matchers) } if RSpec.respond_to?(:configure)
