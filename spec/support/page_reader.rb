# frozen_string_literal: true

require "json"

# Examples that find their way by what is written on a page; `tab` is a {Chromium::Tab}.
module PageReader
  # The first link whose text a pattern of JavaScript matches.
  #
  # @param within [String] a selector
  # @return [String] as {Chromium::Tab#click} takes it
  def link(pattern, within = "main") = element("#{within} a[href]", pattern)

  # The same of any elements.
  def element(selector, pattern)
    "(#{every(selector)}.find((one) => #{pattern}.test(one.textContent)))"
  end

  # @return [Array<String>] of all that a selector chooses
  def texts(selector)
    tab.evaluate("#{every(selector)}.map((one) => one.textContent.trim())")
  end

  # Puts something else into a field.
  def fill(selector, text)
    tab.evaluate("document.querySelector(#{JSON.generate(selector)}).select()")
    tab.type(text)
  end

  # Types into the search of every page, and goes where that leads.
  def search_for(text)
    tab.press("/")
    tab.type(text)
    tab.following("by Enter") { tab.press("Enter") }
  end

  private

  def every(selector) = "[...document.querySelectorAll(#{JSON.generate(selector)})]"
end
