# frozen_string_literal: true

require_relative "watch"

class Chromium
  # A page as somebody sees it who has a mouse and a keyboard. Whatever waits does so for a condition, with
  # {PATIENCE}.
  class Tab
    PATIENCE = 120 # seconds: a machine may be busy
    # Keys that are no letters: their codes, and what they type.
    KEYS = {
      "Enter" => [13, "\r"], "Escape" => [27], "Tab" => [9], "ArrowLeft" => [37], "ArrowUp" => [38],
      "ArrowRight" => [39], "ArrowDown" => [40]
    }.freeze
    # Where an element can be hit, in the part that is seen: in the middle, else at its upper left, as a box
    # with others in it. A link may be broken into lines.
    PLACE = <<~JS
      (() => {
        const found = %s;
        if (!found) return null;
        found.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
        for (const { x, y, width, height } of found.getClientRects()) {
          for (const spot of [{ x: x + width / 2, y: y + height / 2 }, { x: x + 6, y: y + 6 }]) {
            if (width && height && found.contains(document.elementFromPoint(spot.x, spot.y))) return spot;
          }
        }
        return null;
      })()
    JS
    private_constant :PATIENCE, :KEYS, :PLACE

    # @return [Watch] what went wrong
    attr_reader :watch

    def initialize(connection, session, target)
      @connection = connection
      @session = session
      @target = target
      @watch = Watch.new
      connection.listen(session) { |method, params| @watch.take(method, params) }
      ["Page", "Runtime", "Network", "Log"].each { |domain| ask("#{domain}.enable") }
    end

    # Loads a page, and waits until it is whole: also while the server says that a heap is being opened.
    #
    # @param address [String]
    # @return [Integer] its status
    def go(address)
      following("load #{address}") do
        failed = ask("Page.navigate", url: address)["errorText"]
        raise Error, "#{address}: #{failed}" if failed
      end
    end

    # Does what leads to another page, and waits for that.
    #
    # @param what [String] is done
    # @return [Integer] the status of the page that is there then
    def following(what)
      before = watch.loads
      yield
      wait("load a page: #{what}") { watch.loads > before && watch.loaded && watch.status != 202 }
      watch.status
    end

    # A click of the mouse. A live page first gets its first answer, which moves what is below.
    #
    # @param element [String] a selector, or an expression in parentheses whose value is an element
    def click(element)
      wait("see updates", "/^(Updated.*)?$/.test(document.querySelector('#updates')?.textContent ?? '')")
      place = nil
      wait("see #{element}") { place = evaluate(format(PLACE, expression(element))) }
      %w[mouseMoved mousePressed mouseReleased].each do |type|
        pressed = type == "mouseMoved" ? { button: "none" } : { button: "left", clickCount: 1 }
        ask("Input.dispatchMouseEvent", type: type, **place.transform_keys(&:to_sym), **pressed)
      end
    end

    # Presses the mouse at one place of an element and lets it go at another, at the same height.
    #
    # @param element [String] as {#click} takes it
    # @param from [Float] of its width: 0 to 1
    # @param to [Float]
    def drag(element, from, to)
      box = "#{expression(element)}.getBoundingClientRect().toJSON()"
      evaluate("#{expression(element)}.scrollIntoView({ block: 'center', behavior: 'instant' })")
      left, top, width, height = evaluate(box).values_at("x", "y", "width", "height")
      places = [from, (from + to) / 2, to].map { |part| { x: left + part * width, y: top + height / 2 } }
      moves = places.drop(1).map { |place| ["mouseMoved", place] }
      [["mouseMoved", places.first], ["mousePressed", places.first], *moves, ["mouseReleased", places.last]]
        .each_with_index do |(type, place), index|
          button = index.zero? ? { button: "none" } : { button: "left", buttons: 1, clickCount: 1 }
          ask("Input.dispatchMouseEvent", type: type, **place, **button)
        end
    end

    # A click on a link, and the page it leads to.
    #
    # @return [Integer] its status
    def follow(element)
      following("by a click on #{element}") { click(element) }
    end

    # @param key [String] as KeyboardEvent.key has it
    def press(key)
      code, text = KEYS.fetch(key) { [key.upcase.ord, key] }
      typed = text ? { type: "keyDown", text: text } : { type: "rawKeyDown" }
      ask("Input.dispatchKeyEvent", **typed, key: key, windowsVirtualKeyCode: code)
      ask("Input.dispatchKeyEvent", type: "keyUp", key: key, windowsVirtualKeyCode: code)
    end

    # Types into what has the focus.
    def type(text)
      ask("Input.insertText", text: text)
    end

    # @param script [String] an expression
    # @return [Object] its value, or that of its promise
    def evaluate(script)
      answer = ask("Runtime.evaluate", expression: script, returnByValue: true, awaitPromise: true)
      problem = answer["exceptionDetails"]
      raise Error, problem.dig("exception", "description") || problem["text"] if problem

      answer["result"]["value"]
    end

    # @param condition [String] an expression; without one the block is asked
    def wait(what, condition = nil)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
      until condition ? holds?(condition) : yield
        late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
        raise Error, "can't #{what} within #{PATIENCE} s; at #{watch.address}: #{watch.problems}" if late

        @connection.attend(0.02)
      end
    end

    # @return [String] path and query of the page
    def path = evaluate("location.pathname + location.search")

    # @return [String] of the page as it is read
    def text = evaluate("document.body.innerText")

    # @param width [Integer] CSS pixels
    def resize(width, height)
      ask("Emulation.setDeviceMetricsOverride", width: width, height: height, deviceScaleFactor: 1,
        mobile: false)
    end

    # @param media [String] "screen" or "print"
    # @param scheme [String] "light" or "dark"
    def media(media = "screen", scheme: "light")
      ask("Emulation.setEmulatedMedia", media: media,
        features: [{ name: "prefers-color-scheme", value: scheme }])
    end

    # @param format [String] png, jpeg or webp
    # @return [String] the picture of what is seen
    def picture(format: "png", **options)
      ask("Page.captureScreenshot", format: format, **options)["data"].unpack1("m")
    end

    # @param method [String] of the protocol
    def ask(method, **params) = @connection.ask(method, session: @session, **params)

    def close
      @connection.ask("Target.closeTarget", targetId: @target)
    end

    private

    def holds?(condition)
      evaluate(condition)
    rescue Error => e
      raise unless e.message.match?(/navigated|context/i)

      false # a new page is just taking the place of the one that was asked
    end

    def expression(element)
      element.start_with?("(") ? element : "document.querySelector(#{JSON.generate(element)})"
    end
  end
end
