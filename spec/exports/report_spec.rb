# frozen_string_literal: true

require "fileutils"
require "memprof/web"
require "memprof/web/report"
require "tmpdir"

RSpec.describe "a report in a browser", :viewers do
  include HeapDumps

  it "opens from a file, in its colors, and loads and breaks nothing" do
    WebStage.missing { |obstacle| skip obstacle }
    heaps = Memprof::Web::Heaps.new
    [1, 2].each { |number| heaps.add(cache_dump(number)).heap(patience: 120) }
    Dir.mktmpdir do |directory|
      path = File.join(directory, "report.html")
      File.write(path, Memprof::Web::Report.new(heaps).to_html)
      Chromium.open do |browser|
        tab = browser.tab
        tab.go("file://#{path}")
        expect(tab.evaluate("document.querySelectorAll('article').length")).to be > 5
        color = "getComputedStyle(document.querySelector('.icicle rect')).fill"
        expect(tab.evaluate(color)).to match(/\Argb\((?!0, 0, 0)/)
        [1280, 390].each do |width|
          tab.resize(width, 800)
          expect(tab.evaluate("#{WebStage::APPEARANCE.strip}.overflow()")).to eq([]), width.to_s
        end
        expect(tab.evaluate("performance.getEntriesByType('resource').length")).to eq(0)
        expect(tab.watch.forget).to eq([])
      end
    end
  end
end
