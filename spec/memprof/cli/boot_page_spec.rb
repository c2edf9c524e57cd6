# frozen_string_literal: true

require "memprof/boot/required_file"
require "memprof/cli"

RSpec.describe Memprof::CLI::BootPage do
  # As Memprof::Boot::Tree.
  tree = Struct.new(:root, :files, :late, :total, :gems, :rss, :seconds)

  def file(path, others = [])
    amounts = Memprof::Boot::RequiredFile::Amounts.new(9, 900, 5, 500, 0, 0)
    Memprof::Boot::RequiredFile.new(name: path, path: path, kind: :autoload, late: false, failed: false,
      own: amounts, seconds: 0.5, rss: nil).tap { |required| required.also_required_by = others }
  end

  let(:shared) { file("/srv/shop/lib/prices.rb", ["/srv/shop/lib/taxes.rb", "/srv/shop/lib/orders.rb"]) }

  let(:page) do
    root = file("/srv/shop/lib/shop.rb")
    root.children << shared
    described_class.new(tree.new(root, [root, shared], [], root.total, [], nil, 1.0), minimum: 0, limit: 5)
  end

  it "names the other files that require one, unless it is for a screen" do
    expect(page.to(:text))
      .to match(%r{^.* /srv/shop/lib/prices\.rb \(autoload; also required by .*taxes\.rb, .*orders\.rb\)$})
    screen = page.to(:text, width: 100)
    expect(screen).to match(/ Time +Required by +File$/)
    expect(screen).to match(%r{ 500 ms +3 +/srv/shop/lib/prices\.rb \(autoload\)$})
    expect(screen).to match(%r{ 500 ms +/srv/shop/lib/shop\.rb \(autoload\)$})
    expect(page.to(:text, width: 60)).not_to include("Required by")
  end
end
