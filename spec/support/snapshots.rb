# frozen_string_literal: true

require "fileutils"
require "rspec/support/differ"
require "tmpdir"

# Compares a text with its snapshot in spec/fixtures/snapshots. `rake spec:snapshots` (UPDATE_SNAPSHOTS=1)
# updates the snapshot instead: review the difference before you commit it.
module Snapshots
  DIRECTORY = File.expand_path("../fixtures/snapshots", __dir__)

  # Replaces values that differ from run to run: paths, process ids, addresses, times.
  def normalize(text)
    text.gsub(ChildRuby::ROOT, "ROOT").gsub(Dir.tmpdir, "TMP")
      .gsub(/0x\h{8,16}/, "0xADDRESS").gsub(/\bpid \d+/i, "pid PID")
  end

  RSpec::Matchers.define :match_snapshot do |name|
    path = File.join(DIRECTORY, name.include?(".") ? name : "#{name}.txt")

    match do |actual|
      @actual = actual
      if ENV["UPDATE_SNAPSHOTS"]
        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, actual)
      end
      @expected = File.exist?(path) ? File.read(path, encoding: Encoding::UTF_8) : nil
      values_match?(@expected, actual)
    end

    description { "match the snapshot #{name}" }
    failure_message do
      next "no snapshot #{path}; run rake spec:snapshots to keep one" unless @expected

      differ = RSpec::Support::Differ.new(color: RSpec.configuration.color_enabled?)
      "differs from #{path} (rake spec:snapshots accepts it):#{differ.diff(@actual, @expected)}"
    end
  end
end
