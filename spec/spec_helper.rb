# frozen_string_literal: true

require "memprof"

Dir[File.join(__dir__, "support", "*.rb")].sort.each { |file| require file }

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.order = :random
  Kernel.srand(config.seed)
  config.expect_with(:rspec) { |expectations| expectations.max_formatted_output_length = 2000 }
  config.backtrace_exclusion_patterns << /\Aexplanations/
  config.mock_with(:rspec) { |mocks| mocks.verify_partial_doubles = true }

  config.include ChildRuby
  config.include FileSystems
  config.include GCHelpers
  config.include LivePrograms
  config.include PlainPrograms
  config.include PumaServers
  config.include Servers
  config.include Snapshots

  # Asked for by name only: rake package:test.
  config.filter_run_excluding(:package) unless config.inclusion_filter[:package]

  # What bin/test leaves out on some Rubies.
  WhichRubies::FILES.each do |tag, _|
    config.define_derived_metadata(file_path: WhichRubies.matcher(tag)) { |meta| meta[tag] = true }
  end

  # Exact counts: finalizers of what earlier examples left, as of temporary files, would run inside the block
  # that is measured, and allocate there.
  config.define_derived_metadata(file_path: %r{/spec/memprof/|/spec/memprof_spec}) do |meta|
    meta[:exact] = true
  end
  # The thread of Ruby's Timeout, which comes back when it is needed, wakes up a minute after it was, and
  # allocates.
  config.before(:each, :exact) do
    Thread.list.each { |thread| thread.kill.join if thread.name == "Timeout" }
    GC.start
  end

  # Heaps and dumps that were read leave a gigabyte of free memory in malloc, and each fork copies its pages'
  # entries: 50 ms instead of 3.
  config.after(:context) { MallocTrim.call unless self.class.metadata.key?(:parent_example_group) }

  # Tracking is process-wide: what one example leaves on, the next would count.
  config.after { Memprof.stop if Memprof.running? }
end
