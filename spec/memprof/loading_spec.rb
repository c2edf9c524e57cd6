# frozen_string_literal: true

require "tmpdir"

RSpec.describe "Loading what is needed late" do
  it "waits for a thread that loads json" do
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "json.rb"), <<~RUBY)
        module JSON
          def self.generate(_) = State
          $loading << true
          $go_on.pop
          State = "whole"
        end
      RUBY
      result = run_ruby(<<~RUBY, ruby_args: ["-I#{directory}"])
        require "memprof"
        $loading, $go_on = Queue.new, Queue.new
        first = Thread.new { Memprof::Loading.json }
        $loading.pop
        second = Thread.new { Memprof::Loading.json; JSON.generate(nil) }
        Thread.pass until second.stop?
        $go_on << true
        puts first.join && second.value
      RUBY
      expect([result.stderr, result.stdout]).to eq(["", "whole\n"])
    end
  end
end
