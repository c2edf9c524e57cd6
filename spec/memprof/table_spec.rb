# frozen_string_literal: true

require "memprof/table"

RSpec.describe Memprof::Table do
  let(:table) do
    described_class.new.number("Count", style: :red).name("Class", style: :cyan).name("Location")
  end

  it "aligns its columns and leaves no trailing spaces" do
    table.row("1,000,000", "String", "a.rb:1").row("2", "Array", "b.rb:22", notes: ["from c.rb:3"])
    expect(table.to_text).to eq <<~TEXT
          Count  Class   Location
      1,000,000  String  a.rb:1
              2  Array   b.rb:22
                           from c.rb:3
    TEXT
  end

  it "paints what it has aligned" do
    table.row("1", "A", "a.rb:1", notes: ["from b.rb:2"])
    expect(table.to_text(Memprof::Paint.new(true)).lines).to eq [
      "\e[1mCount  Class  Location\e[0m\n",
      "\e[31m    1\e[0m  \e[36mA    \e[0m  a.rb:1\n",
      "\e[2m                from b.rb:2\e[0m\n"
    ]
  end

  it "keeps a row on its line, whatever the names contain" do
    table.row("1", "Odd\nName\e[2J", "a\xFF.rb:1")
    expect(table.to_text).to eq "Count  Class           Location\n    1  Odd\\nName\\e[2J  a\\xFF.rb:1\n"
  end

  it "is a table in Markdown, whatever the names contain" do
    table.row("1", "A|B", "a`b``.rb:1").row("2", "", "line\nbreak.rb:2")
    expect(table.to_markdown).to eq <<~'MARKDOWN'
      | Count | Class | Location |
      | ---: | --- | --- |
      | 1 | `A\|B` | ``` a`b``.rb:1 ``` |
      | 2 |  | `line\nbreak.rb:2` |
    MARKDOWN
  end

  it "knows that it is empty" do
    expect(table).to be_empty
    expect(table.row("1", "A", "a.rb:1")).not_to be_empty
  end
end
