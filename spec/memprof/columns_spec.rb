# frozen_string_literal: true

require "memprof/columns"

RSpec.describe Memprof::Columns do
  let(:rows) { described_class::SECTIONS.values.flatten(1) }
  let(:files) { Dir[File.expand_path("../../{lib/**/*.rb,web/views/*.erb}", __dir__)] }

  it "has each key once, with a kind that is known and a sentence that is a part of one" do
    expect(rows.map(&:first).tally.values).to all(eq(1))
    kinds = %i[bytes count percent growth number seconds series name label place address]
    expect(rows.map { |_, _, kind, _| kind }.uniq - kinds).to eq([])
    expect(rows.map(&:last)).to all(match(/\A\S.*(?:[^.]|\.\.\.)\z/))
  end

  it "has the headings of all tables" do
    declared = files.flat_map do |file|
      literal = File.read(file).scan(/\.(?:column|number|name)\("[^"#]+"/)
      literal.map { |found| "#{File.basename(file)}: #{found}" }
    end
    expect(declared).to eq([]), "name these in lib/memprof/columns.rb: #{declared.join(", ")}"
  end

  it "has no column that nothing shows" do
    code = files.reject { |file| file.end_with?("/columns.rb") }.map { |file| File.read(file) }.join
    named = code.scan(/columns\(([^)]*)/).flatten.join(" ").scan(/:(\w+)/).flatten.map(&:to_sym)
    # Chosen by what is sorted, grouped or compared.
    chosen = %i[referrers depth new gone survived garbage rss pss private shared swap ruby] |
      described_class::GROUPS.values
    expect(rows.map(&:first) - named - chosen).to eq([])
  end

  it "has a column for each fact by which commands and pages group objects" do
    require "memprof/cli"
    require "memprof/web"
    Memprof::Web::Router.standard # loads the pages
    pages = Memprof::Web::Pages
    facts = Memprof::CLI::Histogram::BY | Memprof::CLI::Diff::BY | pages::Groups::BY.keys |
      (pages::Tracked::BY | pages::Diff::BY).map(&:to_sym)
    expect(facts - described_class::GROUPS.keys).to eq([])
    expect(described_class::GROUPS.values - rows.map(&:first)).to eq([])
  end
end
