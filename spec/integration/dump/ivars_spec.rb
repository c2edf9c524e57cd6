# frozen_string_literal: true

require "tmpdir"

# The walk reads instance variables where they lie, once the VM has said often enough where that is. Here each
# object is compared with what Ruby says of it.
RSpec.describe "Instance variables in dumps" do
  # Prints each kind with the number of its objects that are as Ruby says, and the first that is not.
  def compared(before: "")
    Dir.mktmpdir do |directory|
      heaps = File.expand_path("../../fixtures/heaps", __dir__)
      env = { "FILE" => File.join(directory, "dump") }
      result = run_ruby(<<~RUBY, timeout: 300, env: env, ruby_args: ["-I#{heaps}"])
        require "dumping"
        require "ivars"
        encode = lambda do |value|
          case value
          when nil, true, false, Integer then value
          when Symbol then ":\#{value}"
          else Dumping.address(value)
          end
        end
        Ivars.all
        Ivars.generic
        #{before}
        Dumping.write(ENV.fetch("FILE"))
        dumped = Dumping.objects(ENV.fetch("FILE"))
        complex = 0
        compare = lambda do |what, objects, &of|
          wrong = objects.reject do |object|
            record = dumped.fetch(Dumping.address(object))
            complex += 1 if record["too_complex"]
            expected = object.instance_variables.map { |name| [name.to_s, encode[object.instance_variable_get(name)]] }
            of[record, expected]
          end
          puts "\#{what}: \#{objects.size - wrong.size} of \#{objects.size}"
          next if wrong.empty?

          puts dumped.fetch(Dumping.address(wrong.first)), wrong.first.instance_variables.inspect
        end
        Ivars.all.each do |what, objects|
          compare.(what, objects) do |record, expected|
            record.fetch("ivars", {}).to_a.select { |name, _| name.start_with?("@") } == expected
          end
        end
        pairs_of = ->(record) { record.fetch("labels", []).zip(record.fetch("references", [])) }
        Ivars.generic.each do |what, objects|
          compare.(what, objects) do |record, expected|
            pairs = pairs_of[record]
            # Since Ruby 4.0 an object of the VM's own may hold them.
            fields = pairs.find { |label, _| label == "fields" }
            pairs += pairs_of[dumped.fetch(fields.last)] if fields
            references = expected.select { |_, value| value.is_a?(String) && value.start_with?("0x") }
            pairs.select { |label, _| label&.start_with?("@") }.sort == references.sort
          end
        end
        puts "too complex: \#{complex}"
      RUBY
      expect(result.stderr).to eq("")
      result.stdout.lines(chomp: true)
    end
  end

  def expect_equal(lines)
    *kinds, complex = lines
    wrong = kinds.grep_v(/: (\d+) of \1\z/)
    expect(wrong.join("\n")).to eq("")
    expect(kinds.size).to eq(28)
    expect(complex).to match(RUBY_VERSION >= "3.2" ? /: [1-9]\d+\z/ : /: 0\z/)
  end

  it "are what Ruby says, however they lie" do
    expect_equal(compared)
  end

  it "are what Ruby says after the objects were moved" do
    skip "this Ruby can't compact" unless GC.respond_to?(:compact)
    expect_equal(compared(before: "GC.compact"))
  end

  it "are what Ruby says in the dump of a walk that has seen the layout of others before" do
    expect_equal(compared(before: "3.times { Dumping.write(ENV.fetch('FILE')) }"))
  end
end
