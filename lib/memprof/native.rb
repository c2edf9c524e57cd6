# frozen_string_literal: true

module Memprof
  # Sessions by number, in Rust. See ext/memprof/src/binding.
  module Native
  end
end

# A precompiled gem, and a checkout that several Rubies share, have one library for each Ruby; a gem compiled
# while it is installed has a single one. `memprof attach` has loaded it already.
unless Memprof::Native.respond_to?(:own_file=)
  begin
    require "memprof/#{RUBY_VERSION[/\A\d+\.\d+/]}/memprof"
  rescue LoadError
    require "memprof/memprof"
  end
end

module Memprof
  # What memprof allocates for itself, such as the VM's inline caches of its own code, is not recorded.
  Native.own_file = File.expand_path("../memprof.rb", __dir__)
  private_constant :Native
end
