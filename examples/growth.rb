# frozen_string_literal: true

# What grows when the same work is done again and again? The prices fill a cache and then stay; the log leaks.
#
#   ruby examples/growth.rb
require "memprof"

# Works out prices, each once, and notes every question.
class Prices
  def initialize
    @prices = {}
    @log = []
  end

  def of(article)
    @log << "asked for #{article}"
    @prices[article] ||= format("%.2f EUR", article.sum)
  end
end

prices = Prices.new
puts Memprof.growth(times: 20, warmup: 3) { 5.times { |number| prices.of("article #{number}") } }
