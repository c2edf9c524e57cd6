# frozen_string_literal: true

require "memprof/rspec"

# Some C functions allocate an object without a class, fill it, and give it one only before they return it.
RSpec.describe "Objects that get their class after their allocation" do
  let(:word) { "Gr\u00fc\u00dfe" }

  def row_of(rows, class_name)
    rows.find { |row| row[:data] == class_name }
  end

  # Numbers of lines of `Memprof.stats`, by class.
  def stats_of(text)
    text.scan(/^ *(\d+) \S+:(\S+)$/).each_with_object(Hash.new(0)) do |(number, name), sums|
      sums[name] += number.to_i
    end
  end

  it "are counted with it in reports, retained or freed" do
    kept = nil
    report = Memprof.report do
      300.times { word.encode("UTF-16LE") }
      kept = Array.new(200) { word.encode("UTF-16LE") }
    end
    expect(kept.size).to eq(200)
    expect(row_of(report.retained_objects_by_class, "String")[:count]).to be_between(200, 210)
    expect(row_of(report.allocated_objects_by_class, "String")[:count]).to be >= 500
    hidden = row_of(report.allocated_objects_by_class, "<string>")
    expect(hidden ? hidden[:count] : 0).to be < 10
    expect(report.total_retained).to be_between(201, 230)
  end

  it "are counted with it in the statistics of a program, before and after collections" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      Memprof.start
      $strings = Array.new(500) { "\u00fc".encode("UTF-16LE") }
      $arrays = Array.new(500) { [[1], [2]].flatten }
      Memprof.stats
      puts "--"
      GC.start
      Memprof.stats
    RUBY
    expect(result).to be_success, result.stderr
    before, after = result.stdout.split("--").map { |text| stats_of(text) }
    expect(before["String"]).to be >= 500
    expect(before["Array"]).to be >= 500
    expect(after["String"]).to be_between(500, 530)
    expect(after["Array"]).to be_between(502, 530)
    expect(after["<string>"]).to be < 10
  end

  it "count for the matchers of tests" do
    nested = [[1], [2]]
    kept = []
    expect { nested.flatten }.not_to allocate_at_most(0).of(Array)
    expect { word.encode("UTF-16LE") }.not_to allocate_at_most(0).of(String)
    expect { kept << word.encode("UTF-16LE") }.not_to retain_at_most(0).of(String)
    expect { kept << nested.flatten }.to leak_objects.of(Array)
  end

  it "have the names of subclasses, and of classes without a name" do
    kept = nil
    named = stub_const("Label", Class.new(String)).new(word)
    anonymous = Class.new(Class.new(String)).new(word)
    report = Memprof.report do
      kept = Array.new(20) { [named, anonymous].map { |text| text.encode("UTF-16LE") } }
    end
    expect(kept.flatten.map(&:class)).to include(Label, anonymous.class)
    names = report.retained_objects_by_class.map { |row| row[:data] }
    expect(names).to include("Label", "#<Class < String>")
    expect(names).not_to include("<string>")
  end

  it "leave those that stay hidden without a class: what arrays share" do
    part = nil
    report = Memprof.report { part = Array.new(100) { |index| index }.first(50) }
    expect(part.size).to eq(50)
    expect(row_of(report.retained_objects_by_class, "<array>")[:count]).to eq(1)
  end

  it "are seen by each session that recorded them" do
    inner_report = nil
    kept = []
    outer_report = Memprof.report do
      kept << Array.new(100) { word.encode("UTF-16LE") }
      inner_report = Memprof.report { kept << Array.new(50) { word.encode("UTF-16LE") } }
    end
    counts = [outer_report, inner_report].map do |report|
      row_of(report.retained_objects_by_class, "String")[:count]
    end
    expect(counts).to match([be_between(150, 170), be_between(50, 60)])
  end

  # In a Ractor's queue they are retained.
  it "are counted with it when they were moved to another Ractor" do
    skip "no hooks beside Ractors (Bug #18464)" if RUBY_VERSION < "3.1.4"
    result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
      require "memprof"
      Moved = Class.new { def initialize = @name = 1 }
      Pair = Struct.new(:first, :second)
      receiver = Ractor.new { sleep }
      kept = []
      report = Memprof.report do
        300.times { kept << receiver.send(Moved.new, move: true) << receiver.send(Pair.new(1, 2), move: true) }
      end
      puts report.retained_objects_by_class.map { |row| row.values_at(:data, :count).join(" ") }
    RUBY
    expect(result).to be_success, result.stderr
    expect(result.stdout).to include("Moved 300\n", "Pair 300\n")
    expect(result.stdout).not_to match(/<(object|struct)>/)
  end
end
