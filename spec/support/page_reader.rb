# frozen_string_literal: true

require "json"

# Examples that navigate by the text on a page; `tab` is a {Chromium::Tab}.
module PageReader
  # The first link whose text matches a JavaScript pattern.
  #
  # @param within [String] a selector
  # @return [String] a selector for {Chromium::Tab#click}
  def link(pattern, within = "main") = element("#{within} a[href]", pattern)

  # The same for any elements.
  def element(selector, pattern)
    "(#{every(selector)}.find((one) => #{pattern}.test(one.textContent)))"
  end

  # @return [Array<String>] of all elements that match a selector
  def texts(selector)
    tab.evaluate("#{every(selector)}.map((one) => one.textContent.trim())")
  end

  # Replaces the text of a field.
  def fill(selector, text)
    tab.evaluate("document.querySelector(#{JSON.generate(selector)}).select()")
    tab.type(text)
  end

  # Types into the search field of the page, and follows the result.
  def search_for(text)
    tab.press("/")
    tab.type(text)
    tab.following("by Enter") { tab.press("Enter") }
  end

  private

  def every(selector) = "[...document.querySelectorAll(#{JSON.generate(selector)})]"
end
