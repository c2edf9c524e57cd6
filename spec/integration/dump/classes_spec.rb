# frozen_string_literal: true

require "tmpdir"

# What a dump says of classes, and what Ruby says of them: every class of a program.
RSpec.describe "Classes in a dump" do
  program = <<~'RUBY'
    require "memprof"
    require "memprof/heap"
    require "json"
    require "objspace"
    REQUIRES.each { |name| require name }

    module Prefix
      def first = 1
    end

    module Sized
      prepend Prefix
      def size = 2
    end

    module Refined
      refine(String) { def memprof_spec = 1 }
      refine(Integer) { def to_s = "1" }
    end

    class Base
      LIMIT = 10
      RATE = 1.5
      MODE = :fast
      NOTHING = nil
      FLAG = false
      PATTERN = /x/
      SECRET = 1
      private_constant :SECRET
      autoload :Later, "/nowhere/later"
      include Sized
      def size = 3
      def gone = 4
      def hidden = 5
      def old = 6
      private :hidden
      alias_method :other, :size
      attr_accessor :value
      define_method(:block) { 7 }
      class << self
        def build = new
      end
    end

    class Child < Base
      prepend Prefix
      undef_method :gone
      private :size
      def old = super
      public :inspect
    end

    # Fills the caches of methods, also with methods that are not there.
    3.times do
      child = Child.new
      child.inspect
      child.old
      child.value = 1
      child.respond_to?(:nowhere)
      child.nowhere rescue nil
      child.to_s
      Base.new.other
      Base.class_eval { def old = 8 }
      Child.build
    end
    Base.class_eval { def transient = 1 }
    Base.new.transient
    Base.class_eval { remove_method :transient }

    MODULES = ObjectSpace.each_object(Module).to_a
    METHODS = %i[instance_methods private_instance_methods].map { |name| Module.instance_method(name) }
    CONSTANTS, AUTOLOAD = %i[constants autoload?].map { |name| Module.instance_method(name) }
    ANCESTORS, DEFINED = %i[ancestors const_defined?].map { |name| Module.instance_method(name) }
    OF = ->(object) { ObjectSpace.dump(object)[/"address":"(0x\h+)"/, 1] }
    expected = MODULES.to_h do |mod|
      methods = METHODS.flat_map { |method| method.bind_call(mod, false) }.map(&:name)
      constants = CONSTANTS.bind_call(mod, false).reject { |name| AUTOLOAD.bind_call(mod, name, false) }
      [OF.call(mod), [methods, constants.map(&:name)]]
    end
    Memprof.dump_all("heap.json")

    # A class's own line, and that of the included class which has its methods, where modules are prepended.
    lines, origins = {}, {}
    File.foreach("heap.json") do |line|
      next unless line.match?(/\A\{"_id":"0x\h+".{0,200}?"type":"(class|module|iclass)"/)

      record = JSON.parse(line, object_class: Hash)
      record["duplicates"] = line[/"methods":\{(.*?)\}/, 1].to_s.scan(/"((?:[^"\\]|\\.)*)":"0x/).flatten.tally.select { |_, n| n > 1 }.keys
      if record["type"] == "iclass"
        (origins[record["class"]] ||= []) << record if record["methods"]
      else
        lines[record["_id"]] = record
      end
    end
    wrong = []
    MODULES.each do |mod|
      at = OF.call(mod)
      record = lines.fetch(at)
      methods, constants = expected.fetch(at)
      own = [record, *origins[at]].flat_map { |line| (line["methods"] || {}).keys }
      shown = (record["ivars"] || {}).keys.grep(/\A[[:upper:]]/)
      private_or_not = (shown - constants).reject { |name| DEFINED.bind_call(mod, name, false) }
      # To be loaded on demand, from a file that was loaded and has it not.
      missing = (constants - shown).select { |name| mod.const_get(name, false) || true rescue false }
      problems = [methods - own, own - methods, missing, private_or_not, record["duplicates"]]
      wrong << [mod, *problems] unless problems.all?(&:empty?) && own.uniq.size == own.size
    end

    base = lines.fetch(OF.call(Base))["ivars"]
    values = { "LIMIT" => 10, "RATE" => 1.5, "MODE" => ":fast", "NOTHING" => nil, "FLAG" => false, "SECRET" => 1 }
    wrong << base unless base.slice(*values.keys) == values

    # Those to which modules are prepended, and some others.
    heap = Memprof::Heap.open("heap.json")
    prepended = MODULES.reject { |mod| ANCESTORS.bind_call(mod).first.equal?(mod) || mod.singleton_class? }
    [*prepended.first(40), Object, Comparable, Integer, Sized].uniq.each do |mod|
      ancestors = ANCESTORS.bind_call(mod).map { |ancestor| OF.call(ancestor) }
      ancestors.shift if ancestors.first == OF.call(mod)
      shown = heap.ask(:class, of: OF.call(mod))[:ancestors].map { |ancestor| ancestor[:address] }
      wrong << [mod, ancestors, shown] unless shown == ancestors
    end
    puts MODULES.size, wrong.size
    wrong.first(10).each { |problem| puts problem.inspect[0, 600] }
  RUBY

  def expect_right(program, requires)
    Dir.mktmpdir do |directory|
      result = run_ruby("REQUIRES = #{requires.inspect}\n#{program}", chdir: directory, timeout: 400)
      expect(result).to be_success, result.stderr
      count, wrong, *details = result.stdout.lines(chomp: true)
      expect([wrong, details]).to eq(["0", []])
      Integer(count)
    end
  end

  it "have their own methods, each once, and all constants" do
    expect(expect_right(program, [])).to be > 500
  end

  it "do so in a program with Rails" do
    rails = run_ruby('require "rails/all"')
    skip "needs Rails" unless rails.success?

    expect(expect_right(program, %w[rails/all])).to be > 1500
  end
end
