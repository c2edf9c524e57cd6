# frozen_string_literal: true

module Memprof
  class Web
    # Calculations with flame graphs: `names:` and `frames:` as {Icicle} takes them. A frame comes after its
    # parent.
    module Frames
      # The widest frames that a page gets.
      MOST = 100_000
      # Native frames of the VM and of the libc that starts it: "rb_yield (libruby.so.3.1)", "ruby+0x110b".
      VM = /(?:\A|\()(?:libruby[\w.-]*|ruby[\d.]*|libc[.-][\w.-]+|libpthread[\w.-]*|ld-linux[\w.-]*)
            (?:\+0x\h+\z|\)\z|,\s)/x
      private_constant :VM

      class << self
        # A frame is never wider than its parent, so all frames above a frame that stays do as well.
        def widest(flame, most = MOST)
          frames = flame[:frames]
          return flame if frames.size <= most

          kept = wide(frames, most)
          places = kept.each_with_index.to_h
          flame.merge(frames: kept.map { |index| [places[frames[index][0]], *frames[index].drop(1)] },
            folded: flame[:folded].to_i + frames.size - most)
        end

        def vm?(flame) = flame[:names].any?(VM)

        # Merges the VM's native frames into their callers, and callees that then have one name.
        def without_vm(flame)
          hidden = flame[:names].map { |name| name.match?(VM) }
          tree = Tree.new
          places = []
          flame[:frames].each_with_index do |(above, name, own, total), index|
            hide = index.positive? && hidden[name]
            places << (hide ? places[above] : tree.place(places[above].to_i, flame[:names][name], index))
            tree.frames[places[index]][2] += own
            tree.frames[places[index]][3] += total unless hide
          end
          flame.merge(names: tree.names, frames: tree.frames)
        end

        # Two flame graphs in one. A frame has two more numbers: its weight before and after. Its width is the
        # larger one of its own weights and the widths of its callees, so that freed memory is visible, too.
        def difference(before, after)
          tree = Tree.new
          weights = []
          [before, after].each_with_index { |flame, side| weigh(tree, weights, flame, side) }
          rest = weights.map(&:dup)
          tree.frames.each_with_index.drop(1).each do |(above), index|
            2.times { |side| rest[above][side] -= weights[index][side] }
          end
          tree.frames.each_with_index { |frame, index| frame[2] = frame[3] = [rest[index].max, 0].max }
          tree.frames.drop(1).reverse_each { |above, _, _, total| tree.frames[above][3] += total }
          { names: tree.names, frames: tree.frames.zip(weights).map { |frame, pair| frame + pair } }
        end

        private

        # Among equally wide frames, a parent comes first.
        def wide(frames, most)
          least = frames.map { |frame| frame[3] }.sort[-most]
          equal = most - frames.count { |frame| frame[3] > least }
          frames.each_index.select do |index|
            frames[index][3] > least || (frames[index][3] == least && (equal -= 1) >= 0)
          end
        end

        # Adds the weights of one flame graph. Objects and addresses are those of the second one.
        def weigh(tree, weights, flame, side)
          places = []
          flame[:frames].each_with_index do |(above, name, _, total, objects, address), index|
            place = tree.place(places[above].to_i, flame[:names][name], index)
            places << place
            (weights[place] ||= [0, 0])[side] += total
            tree.frames[place][4..5] = [objects, address] if side == 1
          end
        end
      end

      # Frames by their parents and names.
      class Tree
        attr_reader :names, :frames

        def initialize
          @names = []
          @frames = []
          @numbers = {}
          @below = {}
        end

        # The frame of this name below another; the first frame of a flame graph is the root.
        def place(above, name, index)
          number = @numbers[name] ||= @names.push(name).size - 1
          return @below[above << 32 | number] ||= push(above, number) if index.positive?

          push(0, number) if @frames.empty?
          0
        end

        private

        def push(above, number) = @frames.push([above, number, 0, 0, nil, nil]).size - 1
      end
      private_constant :Tree
    end
  end
end
